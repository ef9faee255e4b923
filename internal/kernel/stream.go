package kernel

// streamRow copies a row to where it will not be read soon. It is a dispatch point: an assembly variant writes past the caches.
var streamRow = portableStream

func portableStream(dst, src []float32) { copy(dst, src) }
