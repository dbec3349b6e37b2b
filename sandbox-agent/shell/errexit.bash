# Evaluates the command with set -e on, which an inversion would switch off
# within, and an eval without one would apply to a status that set -e lets pass
# ([ a = b ] && c). Bash asks whether set -e is on before the DEBUG trap of the
# inverted eval runs: that switches it on again, and puts the user's trap back.
# The substitution gives $?. What a DEBUG trap prints is kept out of either.
__berth_own[5]=;
[[ ${__berth_own[0]-} ]] || __berth_own[5]=$( { builtin trap -p DEBUG >&3; } 3>&1 >/dev/null );
builtin set +e;
builtin trap "builtin ${__berth_own[5]:-trap - DEBUG}; builtin set -e" DEBUG;
! builtin eval "${__berth[2]}$( { builtin exit "${__berth[3]}"; } >/dev/null )";
__berth_own[1]=${PIPESTATUS[0]}
