package wire

var (
	DecodeModel = decodeModel // which says of a file that is no model where its encoding is wrong
	CutOff      = cutOff
)
