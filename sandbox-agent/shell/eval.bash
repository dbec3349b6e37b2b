# Evaluates the command, and keeps its status. The inversion keeps an ERR trap,
# which the command has run already, from running for eval as well.
! builtin eval "${__berth[2]}"; __berth_own[1]=${PIPESTATUS[0]}
