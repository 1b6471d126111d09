#!/bin/sh
# Delivers until nothing is due, but no longer than some rounds: what cron calls every minute.
#
#     deliver.sh sqlite:/var/lib/restante/backlog.sqlite /etc/restante.toml
#
# Ends with the exit code of the first run that was none, and with 0 otherwise.
set -u
store=$1 config=$2 rounds=20

while [ "$rounds" -gt 0 ]; do
    rounds=$((rounds - 1))
    report=$(restante run-once --store "$store" --config "$config" --limit 500 --json) || exit
    case $report in
        *'"more":false'*) exit 0 ;;
        # Nothing was done, and something may be due: somebody else is on it, and the next minute is soon enough.
        *'"processed":0,'*) exit 0 ;;
    esac
done
