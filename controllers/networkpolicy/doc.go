// Package networkpolicy closes the network around session pods and opens what
// their egress class allows.
//
// Policies only ever add up, so each one stands alone: a baseline per namespace
// selects every session pod, lets nothing out, and lets only gateway and
// controller in, to the agent's port. One more per egress class in use selects
// the pods that were born with that class. A template that is deleted takes away
// nothing that closes, so nothing opens.
package networkpolicy
