#!/bin/sh
# Lines are drawn by what the locale's characters are, whatever its name says of them.
. tests/support/tmux.sh
[ -d /usr/lib/locale/C.utf8 ] || { echo "there is no C.utf8 here to copy"; exit 77; }
mkdir "$dir/locales" && cp -R /usr/lib/locale/C.utf8 "$dir/locales/xx_XX" || exit 1
tm new-session -d -x 80 -y 24 'sleep 1000' || { echo "tmux does not start"; exit 77; }
draws() {
    tm respawn-pane -k 'sleep 1000'; wait_until '! screen | grep -q .'
    tm respawn-pane -k "env -u LC_CTYPE -u LANG LOCPATH=$dir/locales LC_ALL=$2 $EBB --private -m guide"
    wait_for_re '────|----'
    screen | grep -qF -- "$1$1$1$1" || fail "LC_ALL=$2: no line of $1"
}
draws ─ xx_XX                                    # as en_IN, which has UTF-8 alone
draws ─ nowhere.UTF-8
draws - nowhere
draws - C
exit 0
