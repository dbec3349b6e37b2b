. /proc/self/fd/4; . /proc/self/fd/3 4<&- 5>&-; __berth=$?; { umask; export -p; printf '\0'; pwd; } >&5; exit "$__berth"
