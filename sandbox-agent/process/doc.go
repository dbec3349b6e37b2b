// Package process does an init's work for the agent: it starts children, reaps
// them and every orphan, and kills what a command started without touching
// what was there before.
package process
