package uploadcases

// LastTry is how many files of one name there can be.
const LastTry = 1000

// Collision is what the N-th file of one name is called.
type Collision struct {
	Case, Name string
	N          int
	Want       string
}

// Collisions have each sentence of the rule for names that are taken.
var Collisions = []Collision{
	{"first", "a.txt", 1, "a.txt"},
	{"second", "a.txt", 2, "a_2.txt"},
	{"last", "a.txt", 1000, "a_1000.txt"},
	{"no extension", "Makefile", 2, "Makefile_2"},
	{"extension of two", "a.b.txt", 2, "a.b_2.txt"},
	{"tar.gz", "a.tar.gz", 2, "a_2.tar.gz"},
	{"tar.bz2", "a.tar.bz2", 2, "a_2.tar.bz2"},
	{"tar.xz", "a.tar.xz", 2, "a_2.tar.xz"},
	{"tar.zst", "a.tar.zst", 2, "a_2.tar.zst"},
	{"d.ts", "a.d.ts", 2, "a_2.d.ts"},
	{"min.js", "a.min.js", 2, "a_2.min.js"},
	{"any case", "a.Tar.GZ", 2, "a_2.Tar.GZ"},
	{"nothing before it", "tar.gz", 2, "tar_2.gz"},
	{"not a compound one", "a.tar.txt", 2, "a.tar_2.txt"},
	{"numbered already", "a_2.txt", 2, "a_2_2.txt"},
	{"255 bytes", x300[:255], 2, x300[:253] + "_2"},
	{"255 bytes with extension", x300[:251] + ".txt", 2, x300[:249] + "_2.txt"},
	{"255 bytes, compound", x300[:248] + ".tar.gz", 1000, x300[:243] + "_1000.tar.gz"},
	{"just fits", x300[:249] + ".txt", 2, x300[:249] + "_2.txt"},
	{"cut on a character", x300[:247] + "😀.txt", 2, x300[:247] + "_2.txt"},
	{"extension as long as names", "a." + x300[:253], 2, "a." + x300[:251] + "_2"},
	{"extension that leaves one", "ab." + x300[:251], 2, "a_2." + x300[:251]},
}
