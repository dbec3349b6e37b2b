# What a spare does: wait to be needed, then be the session's shell. A fork
# resets traps, may ignore INT and QUIT and counts as a subshell. Meanwhile it
# tells the shell's state to who asks by a line that is not empty.
while builtin read -r -u 213 __berth || builtin kill -9 "$BASHPID"; [[ $__berth ]];
do { builtin umask -p; builtin declare -xp; builtin declare -fxp; builtin printf '\0'; builtin pwd || builtin :; } >&211;
builtin printf 'P%d\n' "$BASHPID" >&212;
done;
builtin set +m; [[ -z ${__berth_own[3]} ]] || builtin set -m;
__berth=$( { builtin trap -p >&3; } 3>&1 >/dev/null );
builtin trap - INT QUIT;
builtin eval "$__berth";
BASH_SUBSHELL=0;
__berth=();
__berth_own[2]=;
builtin unset -v __berth_loop;
builtin mapfile -d '' -t -u 211 __berth_loop;
builtin eval "$__berth_loop"
