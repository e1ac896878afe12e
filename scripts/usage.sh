# To be sourced first: with --help, the comment at the head of the script that sources it, and nothing else is done.
case "${1:-}" in
  -h | --help)
    sed -n '2,${/^#/!q; s/^# \{0,1\}//p;}' "$0"
    exit 0
    ;;
esac
