# Evaluates the command. The inversion keeps an ERR trap, which the command has
# run already, from running for eval as well; but it would also switch set -e
# off within.
case $- in
*e*) builtin eval "${__berth[2]}"; __berth_own[1]=$?;;
*) ! builtin eval "${__berth[2]}"; __berth_own[1]=${PIPESTATUS[0]};;
esac
