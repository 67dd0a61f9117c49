#!/usr/bin/env bash
# A system to explore, in bash: a walk on the numbers 0 to 9 that slips one time in five.
# Try it: axplore explore 'exec:bash examples/random_walk.sh' --radius 4 --epsilon 1
while read -r line; do
    case $line in
        *reset*) place=0 ;;
        *right*) step=1 ;;
        *left*) step=-1 ;;
    esac
    if [[ $line == *action* ]]; then
        if ((RANDOM % 5 == 0)); then step=$((-step)); fi
        place=$((place + step))
        if ((place < 0)); then place=0; fi
    fi
    if ((place == 9)); then
        echo '{"state": 9, "terminal": true}'
    else
        echo "{\"state\": $place, \"actions\": [\"left\", \"right\"]}"
    fi
done
