// Package output keeps what a command writes: bounded while it runs, exact in
// its counts, and encoded so that it always fits an answer.
package output
