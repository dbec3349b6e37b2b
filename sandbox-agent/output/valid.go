package output

// Valid returns b as text in which each byte that is not UTF-8 is U+FFFD.
func Valid(b []byte) string { return valid(b) }
