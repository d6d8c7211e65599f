#!/usr/bin/env bash
# Builds the zstd command with its own makefiles, without the decoders of its first formats. Runs in an empty build folder;
# leaves ./program.
cp -r "$SOURCE/." .
make -s -C programs zstd CC="$CC" CFLAGS="-O2 -g" HAVE_ZLIB=0 HAVE_LZMA=0 HAVE_LZ4=0 ZSTD_LEGACY_SUPPORT=0
ln -sf programs/zstd program
