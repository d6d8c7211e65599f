#!/usr/bin/env bash
# Runs the sqlite3 of $1 on a database in memory and on one in the scratch folder $2.
"$1" :memory: <"$3/workload.sql"
rm -f "$2/shop.db"
"$1" "$2/shop.db" <"$3/workload.sql"
cksum <"$2/shop.db"
