// Package differential compares a session's shell with a plain bash. Random
// scripts are generated from a grammar; each is run once in one plain bash and
// once in a session, in an agent of its own, split over calls at random places, with time-outs, cancels
// and ends of the shell in between, which must leave no trace. Output, status
// of each part, the state at the end and the files must be the same.
//
// The reference is one bash -c, as the session's shell is, that reads the
// commands as they are written: no eval, no subshell. Between two parts stands
//
//	__ref N && :
//
// a function that records $?, gives the next part standard streams of its own
// and returns $? as it was. A status that is followed by && is neither an ERR
// trap's nor set -e's affair, so nothing of the shell's state sees the mark.
package differential
