// Package ortdiff compares every operator with ONNX Runtime, which its tests
// run in a Python process beside them. The package itself is empty.
//
// A test draws small models of one operator, with attributes, types, shapes and
// values that the specification allows, runs each on both, and compares the
// results: the same types and shapes, values within the tolerance of the
// operator (tolerances), NaN in the same places. Tenure runs each model three
// times, borrowing the inputs, with the inputs given up, and call by call with
// package eager: these agree bit for bit. Where ONNX Runtime departs from the
// specification a row of the table departures says how, and the test looks
// away. An operator without a generator of its own is drawn from its cases in
// internal/opcases, and TestCases draws every operator from these.
//
// TestNetworks draws networks of 5 to 60 nodes: layers as exporters write them,
// nodes of every operator as their generators draw them, sequences, sizes that
// are computed, nested graphs with values of the graph around them, functions,
// constants that are inputs too, in float32, float16 and float64 with casts to
// every type. ONNX Runtime runs each step as soon as it is drawn, so that all
// values are known and moderate. A network runs as it is drawn, or as ONNX
// Runtime's optimiser or quantiser rewrites it; at its own sizes and, from one
// load, at others. Where results differ, the nodes run one by one, in both,
// with the values that they have in the network: a node that departs as the
// table says explains the difference, and so does a network in which every node
// agrees alone and nothing changes where none are fused (roundings grow), or
// whose results differ as much in ONNX Runtime after changes in the last bits.
// -drawn prints how often each operator, type and property was drawn.
//
// TestPublicCases opens the dimensions of the public test cases,
// TestModelsAtSizes takes models of the optional test data that have open ones:
// each is loaded once and runs at its own sizes and at others, in mixed order,
// so that instances of structures are compared too.
//
// TestEstimators compares estimators of scikit-learn, LightGBM and XGBoost that
// skl2onnx and onnxmltools have converted.
//
//	go test ./internal/ortdiff                          # some models of every operator
//	go test ./internal/ortdiff -models 5000 -v          # more of them
//	go test ./internal/ortdiff -models 5000 -run TestOperators/Resize -from 17
//	go test ./internal/ortdiff -run TestNetworks -networks 20000 -network 100000 -drawn -v -timeout 3h
//	go test ./internal/ortdiff -run TestOperators -rewriting basic -models 100 # as ONNX Runtime saves them
//	go test ./internal/ortdiff -run TestPublicCases -public 0 -v # every public case, with counts
//
// A model that fails is drawn again in smaller sizes until a small one fails
// too, and is printed as text with the numbers (-from) that draw it again.
//
// Tensors belong to the test that makes them. The tests of one process share no
// state but the Python processes, one per test that runs at a time.
package ortdiff
