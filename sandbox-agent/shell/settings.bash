# Evaluates the command with set -e and set -x as the user has them. Within an
# inverted eval set -e has no effect, and an eval that is not inverted would end
# the shell by a status that set -e lets pass ([ a = b ] && c). But bash asks
# whether set -e is on before the DEBUG trap of the eval runs: that switches it on
# again, and set -x, and puts the user's trap back. The substitution gives $?,
# which is 0 without it. What a DEBUG trap or set -x prints is kept out of either.
__berth_own[5]=;
[[ ${__berth_own[0]-} ]] || __berth_own[5]=$( { builtin trap -p DEBUG >&3; } 3>&1 >/dev/null );
case ${-##*e*} in '') __berth_own[7]=e${__berth_own[6]-};; *) __berth_own[7]=x;; esac;
__berth_own[6]=;
__berth_own[8]=${__berth[3]#0};
builtin set +e;
builtin trap "builtin ${__berth_own[5]:-trap - DEBUG}; builtin set -${__berth_own[7]}" DEBUG;
! builtin eval "${__berth[2]}${__berth_own[8]:+$( { builtin exit "${__berth_own[8]}"; } >/dev/null 2>&1 )}";
{ __berth_own[1]=${PIPESTATUS[0]}; case ${-##*x*} in '') __berth_own[6]=x; builtin set +x;; esac; } 2>/dev/null
