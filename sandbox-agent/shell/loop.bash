# The loop of a resident shell. life.go drops comments and joins the lines to
# one, so that line 1 of a command is line 1 in what bash says of it. SPARE
# stands for spare.bash, EVAL for eval.bash, SETTINGS for settings.bash.
#
# A round runs one command, unless it is the first of its shell, and then
# prepares the next one. The here-strings are the pipes of its streams: see
# doc.go.
#
# A copy of the shell is forked and waits (F). Its parent is another fork that ends
# at once: so $! and jobs are the user's, and the shell has no child but the
# user's, without which a wait of bash may not end. When room is made in a full
# process table that fork may be killed, and is made again. After a call of a mere
# program the spare from before is as good (N). neutral.go names one by its text;
# here it must be no function, no alias and no builtin of the user's own (asked
# before it runs: one may end itself), and nothing may run beside it: no trap, no
# PS4. /dev/full tells whether trap prints anything, without a fork. Monitor mode
# gives the spare a process group of its own: kill 0 is not for it. The fork is a
# round's last act: each spare that goes on does so deeper in the stack, by what
# bash had on it here.
#
# A command that closed the loop's descriptors, gave its variables other attributes
# (readonly, a map), or took enable away, has broken the shell: it ends, if need be by an expansion
# that fails, and the spare from before that command goes on.
#
# __berth holds 1: path of standard input, 2: the command,
# 3: $? before it, 4: the name of a mere program, 5: a directory to go to before,
# or nothing, 6: how many variables to export there, 7 and so on: these.
# __berth_own holds 0: no trap is set, 1: $? of the command, 2: F or N when a
# command may come, 3: the user's monitor mode, 4: whether F failed, 5: a DEBUG
# trap, 6: x for the user's set -x, which is off meanwhile, 7: e, x or ex, 8: $? unless it
# is 0.
while builtin :; do
case ${__berth_own[2]-} in
F) [[ ${__berth_own[3]} ]] || builtin set +m; if [[ ${__berth_own[4]} ]]; then __berth_own[2]=; else builtin printf 'R%d\n' "$BASHPID" >&212 || builtin kill -9 "$BASHPID"; fi;;
N) builtin printf 'N%d\n' "$BASHPID" >&212 || builtin kill -9 "$BASHPID";;
esac;
if [[ ${__berth_own[2]-} ]]; then
builtin read -r -u 210 "__berth[1]" || builtin exit;
builtin mapfile -d '' -t -u 211 -O 1 __berth || [[ ${__berth_own[9]?} ]];
if [[ ${__berth[4]-} ]] && { [[ -z ${__berth_own[0]-} ]] || builtin declare -F "${__berth[4]}" || builtin alias "${__berth[4]}" ||
case ${__berth[4]} in true|false|echo|test) [[ '' ]];; *) builtin compgen -b -- "${__berth[4]}";; esac; };
then __berth[4]=;
fi;
# A command's continue begins a round without it.
__berth_own[2]=;
exec <"${__berth[1]}" >|/proc/self/fd/204 2>|/proc/self/fd/205 204<&- 205<&- 206<&-;
[[ -z ${__berth[5]} ]] || { builtin cd -- "${__berth[5]}" && builtin export -- "${__berth[@]:7:__berth[6]}"; } || __berth[2]="[[ '' ]] && :";
# Removing a prefix, unlike case itself, minds the case of letters in any case.
# The condition is there for $?: the command sees that of the one before.
case ${-##*e*}:${__berth_own[6]-} in
:*|*:x) SETTINGS;;
*) if case ${__berth[3]} in 0) builtin :;; 1) [[ '' ]];; *) ( builtin exit "${__berth[3]}" );; esac;
then EVAL; else EVAL; fi;;
esac;
# What the loop can't do without is not the user's to redefine.
unset -f builtin exec;
# A shell that can't tell is of no use.
builtin printf 'D%d\n' "${__berth_own[1]}" >&212 || { builtin trap - EXIT; builtin exit "${__berth_own[1]}"; };
fi;
exec </dev/null >/dev/null 2>&1 204<<<'' 205<<<'' 206<<<'';
case ${__berth[4]-} in
'') builtin : <&213 <&211 <&210 || builtin kill -9 "$BASHPID";
case ${-##*x*} in '') __berth_own[6]=x; builtin set +x;; esac;
if [[ -z ${__berth_own[6]-} ]] && builtin trap -p >/dev/full; then __berth_own[0]=1; else __berth_own[0]=; fi;
__berth[0]=;
builtin shopt -q nocasematch || case ${__berth@a}${__berth_own@a}${__berth_loop+${__berth_loop@a}} in *[Acilnru]*) builtin kill -9 "$BASHPID";; esac;
unset -f enable;
enable builtin mapfile read printf trap set kill exit eval : || [[ ${__berth_own[9]?} ]];
case $- in *m*) __berth_own[3]=1;; *) __berth_own[3]=; builtin set -m;; esac;
__berth_own[2]=F;;
*) __berth_own[2]=N;;
esac;
case ${__berth_own[2]} in F) ( ( SPARE ) & builtin printf 'S%d\n' "$!" >&212 ); __berth_own[4]=${?#0};; esac;
done;
# A command's break outside a loop of its own gets here.
builtin eval "$__berth_loop"
