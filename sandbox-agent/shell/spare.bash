# What a spare does: wait to be needed, then be the session's shell. A fork
# resets traps, ignores INT and QUIT and counts as a subshell.
builtin read -r -u 203 __berth || builtin kill -9 "$BASHPID";
__berth=$(builtin trap -p);
builtin trap - INT QUIT;
builtin eval "$__berth";
BASH_SUBSHELL=0;
__berth=$!;
builtin eval "$__berth_loop";
builtin exit
