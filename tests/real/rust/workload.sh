#!/usr/bin/env bash
# Runs the program of $1.
"$1"
