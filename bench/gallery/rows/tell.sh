# tell LINE…: writes lines to $TREERING_ACKS, if there is one.
tell() {
    [ -z "${TREERING_ACKS:-}" ] || printf '%s\n' "$@" >>"$TREERING_ACKS"
}
