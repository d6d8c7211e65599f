//! A system that refuses the requests of a measurement: that is reported, and no claim is made.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::sync::Arc;
use std::time::Duration;

use memlode_measure::Error;
use memlode_measure::bench::{BenchNote, BenchPlan, measure};
use memlode_measure::bias::environment::{EnvironmentPlan, sweep_program};
use memlode_measure::bias::function::sweep_function;
use memlode_measure::process::{Launch, StopFlag, can_fix_addresses};

/// Refuses `personality`, as containers do, for this thread and all processes that it starts.
fn refuse_personality() {
    let statement = |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        // The number of the system call is the first word.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, libc::SYS_personality as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the filter lives until the kernel has copied it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program), 0);
    }
}

#[test]
fn fixed_addresses_that_are_refused_are_said() {
    let thread = std::thread::spawn(|| {
        refuse_personality();
        assert!(!can_fix_addresses());
        let program = Launch { words: vec!["true".into()], ..Launch::default() };
        let plan = BenchPlan {
            programs: vec![program.clone()],
            links: vec![None],
            variants: 1,
            prepare: Vec::new(),
            warmup: 0,
            time: Duration::from_secs(60),
            rounds: Some(12),
            metric: None,
            seed: 1,
        };
        let stop = Arc::new(StopFlag::new(false));
        let notes = measure(&plan, &stop, &mut |_| {}).expect("it is measured").result(&plan).notes;
        assert!(notes.contains(&BenchNote::RandomAddresses), "{notes:?}");
        // What depends on them does not begin.
        let plan = EnvironmentPlan { program, time: Duration::from_secs(60), seed: 1 };
        let mut told = |_, _| panic!("it began");
        for found in [sweep_program(&plan, &stop, &mut told), sweep_function(&plan, "main", &stop, &mut told)]
        {
            let Err(Error::Machine(why)) = found else { panic!("{found:?}") };
            assert!(why.contains("fixed addresses"), "{why}");
        }
    });
    thread.join().expect("no panic");
}
