#!/usr/bin/env bash
# What the responder types, from the first suspicion to the proof, in the folder that setup.py made:
#
#   python -m eval.incident.setup FOLDER && eval/incident/respond.sh FOLDER
#
# Every command is printed before its output, and nothing but `muniment` is used.
set -euo pipefail
cd "$1"
export MUNIMENT_STORE=store MUNIMENT_SCOPE=acme/billing MUNIMENT_MODEL=none MUNIMENT_POLICY=policy.toml
MUNIMENT=${MUNIMENT:-muniment}

say() { printf '\n# %s\n' "$*"; }
run() {
    printf '$ muniment'
    for word; do [[ $word == *[\ \*]* ]] && printf " '%s'" "$word" || printf ' %s' "$word"; done
    printf '\n'
    $MUNIMENT "$@" 2>&1
}

say "A customer never got our invoice: it went to another address. Who told us of that address?"
run recall "globex-pay.example" -k 2
PAGE=$($MUNIMENT sql "select id from memories where origin like 'web:%globex%'" --csv | tail -1)
run explain "$PAGE"

say "What came of the page: what says so, what was only written after reading it, and what was done"
run trace "$PAGE"
DECISION=$($MUNIMENT sql "select id from decisions where allowed" --csv | tail -1)
run explain "$DECISION"

say "Contain it, in one event. From here on it is neither recalled nor able to support anything."
HEAD=$($MUNIMENT sql "select max(seq) from events" --csv | tail -1)
run quarantine --from-trace "$PAGE" --reason "the page was poisoned" | tee quarantine.txt
QUARANTINE=$(sed -n 2p quarantine.txt)
run recall "globex-pay.example"
run decide invoice.send --arg to=billing@globex-pay.example --evidence "$PAGE" --dry-run || true

say "Prove what was known then, and what would have been without the page"
run replay --to "$HEAD" beliefs
run replay --to "$HEAD" --without 'origin=web:*'
run diff "$HEAD"
run trace "$PAGE" --report page.html
run verify

say "If it turns out that Globex did move, one event puts all of it back"
run release "$QUARANTINE" --reason "they did move"
run beliefs
