//! What an ELF image tells: sections, build id, global objects.
