package main

// Each program takes no memory but that of its inputs and outputs.
func Example() {
	main()
	// Output:
	// concat_update      arena 0 bytes, 3 results in place, 0 copies; x[2,7] = 1.000
	// log_concat_update  arena 0 bytes, 3 results in place, 0 copies; x[2,7] = 1.000
	// own_kernel         arena 0 bytes, 3 results in place, 0 copies; x.new[2,7] = 1.000
}
