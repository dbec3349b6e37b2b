# The loop of a resident shell. life.go drops comments and joins the lines to
# one, so that line 1 of a command is line 1 in what bash says of it. SPARE
# stands for spare.bash, EVAL for eval.bash.
#
# A round runs one command, unless it is the first of its shell, and then
# prepares the next one. The here-strings are the pipes of its streams: see
# doc.go.
#
# A copy of the shell is forked and waits. While $! is a spare's, the user has
# started nothing in the background, and one fork will do (A); else the spare's
# parent is another fork that ends at once, so that $! and jobs are the user's
# (B); it may be killed when room is made in a full process table, and is then
# forked again. After a call of a mere program the spare from before is as good
# (N). neutral.go names one by its text; here it must be no function and no alias
# (asked before it runs: one may end itself), and nothing may run beside it: no
# trap, no PS4. /dev/full tells whether trap prints anything, without a fork.
# Monitor mode gives the spare a process group of its own: kill 0 is not for it.
# The fork is a round's last act: each spare that goes on does so deeper in the
# stack, by what bash had on it here.
#
# __berth holds 0: $! of the spare, 1: path of standard input, 2: the command,
# 3: $? before it, 4: the name of a mere program, and what a preamble uses.
# __berth_own holds 0: no trap is set, 1: $? of the command, 2: A, B or N when a
# command may come, 3: the user's monitor mode, 4: whether B failed.
while builtin :; do
case ${__berth_own[2]-} in
A) builtin disown "$!"; __berth=$!; [[ ${__berth_own[3]} ]] || builtin set +m; builtin printf 'S%d\nR%d\n' "$!" "$BASHPID" >&212 || builtin kill -9 "$BASHPID";;
B) [[ ${__berth_own[3]} ]] || builtin set +m; if [[ ${__berth_own[4]} ]]; then __berth_own[2]=; else builtin printf 'R%d\n' "$BASHPID" >&212 || builtin kill -9 "$BASHPID"; fi;;
N) builtin printf 'N%d\n' "$BASHPID" >&212 || builtin kill -9 "$BASHPID";;
esac;
if [[ ${__berth_own[2]-} ]]; then
builtin read -r -u 210 "__berth[1]" || builtin exit;
builtin mapfile -d '' -t -u 211 -O 1 __berth;
if [[ ${__berth[4]-} ]] && { [[ -z ${__berth_own[0]-} ]] || builtin declare -F "${__berth[4]}" || builtin alias "${__berth[4]}"; };
then __berth[4]=;
fi;
# A command's continue begins a round without it.
__berth_own[2]=;
exec <"${__berth[1]}" >|/proc/self/fd/204 2>|/proc/self/fd/205 204<&- 205<&- 206<&-;
# The condition is there for $?: the command sees that of the one before.
if case ${__berth[3]} in 0) builtin :;; 1) [[ '' ]];; *) ( builtin exit "${__berth[3]}" );; esac;
then EVAL; else EVAL; fi;
# What the loop can't do without is not the user's to redefine.
unset -f builtin exec;
# A shell that can't tell is of no use.
builtin printf 'D%d\n' "${__berth_own[1]}" >&212 || { builtin trap - EXIT; builtin exit "${__berth_own[1]}"; };
fi;
exec </dev/null >/dev/null 2>&1 204<<<'' 205<<<'' 206<<<'';
case ${__berth[4]-} in
'') if [[ $- != *x* ]] && builtin trap -p >/dev/full; then __berth_own[0]=1; else __berth_own[0]=; fi;
case $- in *m*) __berth_own[3]=1;; *) __berth_own[3]=; builtin set -m;; esac;
case ${!-} in "${__berth-}") __berth_own[2]=A;; *) __berth_own[2]=B;; esac;;
*) __berth_own[2]=N;;
esac;
case ${__berth_own[2]} in
A) ( SPARE ) & ;;
B) ( ( SPARE ) & builtin printf 'S%d\n' "$!" >&212 ); __berth_own[4]=${?#0};;
esac;
done;
# A command's break outside a loop of its own gets here.
builtin eval "$__berth_loop"
