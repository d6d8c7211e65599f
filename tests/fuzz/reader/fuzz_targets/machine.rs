//! Descriptions of machines, from any text. What is accepted must be usable.
#![no_main]

use libfuzzer_sys::fuzz_target;
use memlode_machine::Machine;

fuzz_target!(|text: &str| {
    match Machine::from_toml(text, "fuzz.toml") {
        Ok(machine) => {
            for level in &machine.levels {
                assert!(level.sets() > 0, "{level:?}");
                assert_eq!(level.sets() * u64::from(level.ways) * u64::from(level.line_bytes), level.bytes);
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
