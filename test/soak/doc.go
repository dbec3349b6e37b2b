// Package soak runs one agent for long: thousands of mixed commands, output by
// the gigabyte, full queues, kills of thousands of processes. Afterwards its
// processes, descriptors, memory and disk are what they were, and meanwhile its
// health answered. `make test` runs a short form, `make soak` the long one.
package soak
