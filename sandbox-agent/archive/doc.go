// Package archive writes a directory, or a file, as .tar.gz while it is read.
//
// Nothing is followed: each name is opened relative to the directory it was read
// from, and a link is stored as one. What a tree may be is bounded, so that a
// hostile one ends in an error and not in the agent's memory or time. The same
// tree gives the same bytes: names are sorted, and owners and the times of reading
// are not in it.
package archive
