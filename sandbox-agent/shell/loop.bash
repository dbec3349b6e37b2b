# The loop of a resident shell. life.go drops comments and joins the lines to
# one, so that line 1 of a command is line 1 in what bash says of it. SPARE
# stands for spare.bash.
#
# A copy of the shell is forked and waits. While $! is a spare's, the user has
# started nothing in the background, and one fork will do; else the spare's
# parent is another fork that ends at once, so that $! and jobs are the user's.
while :; do
case ${!-} in
"${__berth-}") ( SPARE ) <&- & builtin disown "$!"; __berth=$!; builtin printf 'S%d\n' "$!" >&202;;
*) ( ( SPARE ) <&- & builtin printf 'S%d\n' "$!" >&202 );;
esac;
# The here-strings are the pipes of the command's streams: see doc.go.
{
builtin printf 'R%d\n' "$BASHPID" >&202;
builtin read -r -u 200 "__berth[1]" || builtin exit;
builtin mapfile -d '' -t -u 201 -O 1 __berth;
builtin eval "${__berth[2]}" <"${__berth[1]}" >|/proc/self/fd/204 2>|/proc/self/fd/205 200<&- 201<&- 202>&- 203<&- 204<&- 205<&- 206<&-;
builtin printf 'D%d\n' "$?" >&202;
} 204<<<'' 205<<<'' 206<<<'';
done;
# A command's break or continue outside a loop of its own gets here.
builtin eval "$__berth_loop"
