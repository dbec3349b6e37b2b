package shellcases

// hostile: commands against the agent and its shell.
var hostile = []Case{
	{"every descriptor closed", 0, Steps{{Run: `for ((i=0;i<256;i++)); do eval "exec $i>&-" 2>/dev/null; done`, Loose: true, Code: AnyCode}, {Run: `echo ok`, Loose: true, Stdout: "ok\n"}, {Run: `echo ok`, Stdout: "ok\n"}}},
	{"kill -9 -1", Damages, Steps{{Run: `kill -9 -1; echo done`, Loose: true, Code: AnyCode}, {Run: `echo ok`, Loose: true, Stdout: "ok\n"}, {Run: `echo ok`, Stdout: "ok\n"}}},
	{"kill -9 of shell and spare", Damages, Steps{{Run: `kill -9 -1; kill -9 $BASHPID`, Code: 137, Loose: true}, {Run: `echo "[$x]"`, Loose: true, Stdout: "[]\n"}}},
	{"kill -9 $PPID", 0, Steps{{Run: `kill -9 $PPID; kill -9 1; echo alive`, Stdout: "alive\n"}, next}},
	{"every signal to PID 1", 0, Steps{{Run: `for s in $(seq 1 64); do [ $s = 15 ] || kill -$s 1; done; echo alive`, Loose: true, Stdout: "alive\n"}, next}},
	{"ulimit -u 1", 0, Steps{{Run: `ulimit -u 1; echo set`, Stdout: "set\n"}, {Run: `echo ok`, Loose: true, Stdout: "ok\n"}, {Run: `/bin/true; echo ok`, Loose: true, Code: AnyCode}}},
	{"ulimit -n 4", 0, Steps{{Run: `ulimit -n 4`, Loose: true}, {Run: `echo "next $x"`, Stdout: "next kept\n", Notice: "failed after"}, next}},
	{"ulimit -f 0", 0, Steps{{Run: `ulimit -f 0`}, next}},
	{"ulimit -v", 0, Steps{{Run: `ulimit -v 20000`, Loose: true, Code: AnyCode}, {Run: `true`, Loose: true, Code: AnyCode}}},
	{"thousands of descriptors", 0, Steps{{Run: `for ((i=300;i<900;i++)); do eval "exec $i</dev/null"; done`}, next}},
	{"removes temporary files", 0, Steps{{Run: `rm -rf /tmp/.berth* .berth* 2>/dev/null; true`}, next}},
}
