# The loop of a resident shell. life.go drops comments and joins the lines to
# one, so that line 1 of a command is line 1 in what bash says of it. SPARE
# stands for spare.bash, EVAL for eval.bash.
#
# The here-strings are the pipes of the next command's streams: see doc.go.
#
# A copy of the shell is forked and waits. While $! is a spare's, the user has
# started nothing in the background, and one fork will do; else the spare's
# parent is another fork that ends at once, so that $! and jobs are the user's;
# it may be killed when room is made in a full process table.
# After a call of a mere program the spare from before is as good. neutral.go
# names one by its text; here it must be no function and no alias (asked before
# it runs: one may end itself), and nothing may run beside it: no trap, no PS4.
# /dev/full tells whether trap prints anything, without a fork.
#
# __berth holds 0: $! of the spare, 1: path of standard input, 2: the command,
# 3: $? before it, 4: the name of a mere program, and what a preamble uses.
while builtin :; do
exec </dev/null >/dev/null 2>&1 204<<<'' 205<<<'' 206<<<'';
if [[ ${__berth[4]-} ]];
then builtin printf 'N%d\n' "$BASHPID" >&212;
else case ${!-} in
"${__berth-}") ( SPARE ) & builtin disown "$!"; __berth=$!; builtin printf 'S%d\nR%d\n' "$!" "$BASHPID" >&212;;
*) until ( ( SPARE ) & builtin printf 'S%d\n' "$!" >&212 ); do builtin :; done; builtin printf 'R%d\n' "$BASHPID" >&212;;
esac;
if [[ $- != *x* ]] && builtin trap -p >/dev/full; then __berth_calm=1; else __berth_calm=; fi;
fi;
builtin read -r -u 210 "__berth[1]" || builtin exit;
builtin mapfile -d '' -t -u 211 -O 1 __berth;
if [[ ${__berth[4]-} ]] && { [[ -z ${__berth_calm-} ]] || builtin declare -F "${__berth[4]}" || builtin alias "${__berth[4]}"; };
then __berth[4]=;
fi;
exec <"${__berth[1]}" >|/proc/self/fd/204 2>|/proc/self/fd/205 204<&- 205<&- 206<&-;
# The condition is there for $?: the command sees that of the one before.
if case ${__berth[3]} in 0) builtin :;; 1) [[ '' ]];; *) ( builtin exit "${__berth[3]}" );; esac;
then EVAL; else EVAL; fi;
# What the loop can't do without is not the user's to redefine.
unset -f builtin exec;
builtin printf 'D%d\n' "$__berth_status" >&212;
done;
# A command's break or continue outside a loop of its own gets here.
builtin eval "$__berth_loop"
