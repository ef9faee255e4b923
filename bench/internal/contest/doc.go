// Package contest lets two engines run one model in turn and reports times,
// memory and differences of their results side by side.
//
// [Prepare] writes the model and its inputs; [Job.Run] starts a process per
// engine, takes the peak of each, compares one run's outputs, and then lets
// them run A B A B. [Result] makes a result of the rows. What the figures mean
// stands at [Row]. A job and a row belong to one goroutine.
package contest
