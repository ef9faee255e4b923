package op

// FunctionDef is functionDef, for tests with rows that are in no table.
var FunctionDef = functionDef

// BinaryFunctionDef is binaryFunctionDef, for tests with rows that are in no
// table.
var BinaryFunctionDef = binaryFunctionDef
