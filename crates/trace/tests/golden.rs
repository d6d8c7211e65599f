//! Golden traces: written by C, read here and in Python, the same for ever.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

use memlode_replay::Replay;
use memlode_replay::check::check;
use memlode_trace::event::ProcessId;
use memlode_trace::format::version;
use memlode_trace::layouts::{Form, MemberKind, TypeLayout};
use memlode_trace::sites::{NameEvidence, Site, SiteId, SiteKind, StringId};
use memlode_trace::text::{HEADER, TextWriter};
use memlode_trace::work::Feed;
use memlode_trace::{LeftOut, Trace};

fn format_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../format")
}

/// The golden traces and their text.
fn goldens() -> Vec<(PathBuf, String)> {
    let versions = (1..=version::TRACE).map(|version| format_folder().join(format!("golden/v{version}")));
    versions.map(|path| (path.clone(), fs::read_to_string(path.join("expected.txt")).unwrap())).collect()
}

#[test]
fn rust_reads_them() {
    for (path, expected) in goldens() {
        let trace = Trace::open(&path).unwrap();
        let mut out = format!("{HEADER}\n").into_bytes();
        let mut writer = TextWriter::new(&trace);
        let replayed = trace.replay(2, |batch| {
            writer.write(batch, &mut out).unwrap();
            ControlFlow::Continue(())
        });
        assert!(replayed.damaged.is_empty(), "{:?}", replayed.damaged);
        assert_eq!(String::from_utf8(out).unwrap(), expected);
        assert_eq!(check(&path, 0).unwrap().problems, []);
    }
}

#[test]
fn python_reads_them() {
    for (path, expected) in goldens() {
        let output =
            Command::new("python3").arg(format_folder().join("golden/read.py")).arg(&path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}

#[test]
fn c_writes_the_newest() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("write");
    let status = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(format_folder().join("generated"))
        .arg(format_folder().join("golden/write.c"))
        .arg("-o")
        .arg(&program)
        .status();
    assert!(status.unwrap().success());
    let (golden, _) = goldens().pop().unwrap();
    for folder in ["modules", "threads"] {
        fs::create_dir(directory.path().join(folder)).unwrap();
    }
    assert!(Command::new(program).arg(directory.path()).status().unwrap().success());
    for file in ["manifest.json", "events.ndjson", "modules/0000.mlm", "threads/p0000-t0000.mlt"] {
        let read = |folder: &Path| fs::read(folder.join(file)).unwrap();
        assert!(read(directory.path()) == read(&golden), "{file} differs from {}", golden.display());
    }
}

/// Reads the parts of version 1 that the text does not show.
#[test]
fn names_and_globals_of_version_1() {
    let trace = Trace::open(&format_folder().join("golden/v1")).unwrap();
    let sites = trace.sites();
    let named = |member: &str| {
        let has_it =
            |site: &&memlode_trace::sites::Site| site.member.is_some_and(|id| sites.string(id) == member);
        *sites.sites().iter().find(has_it).unwrap()
    };
    let (cost, key) = (named("cost"), named("key"));
    assert_eq!((cost.kind, cost.evidence, cost.bytes), (SiteKind::Load, NameEvidence::Source, 8));
    assert_eq!(sites.ty(key.ty.unwrap()).bytes, 200);
    let chain: Vec<_> = sites
        .inline_chain(key.location.unwrap())
        .map(|at| (sites.string(sites.function(at.function).name), at.line, at.column))
        .collect();
    assert_eq!(chain, [("key_of", 6, 13), ("price", 12, 17)]);
    assert_eq!(sites.string(sites.function(key.function).name), "price", "whose machine code holds it");

    let at = |address, stamp| {
        trace.global_at(ProcessId(0), address, stamp).map(|(_, global)| global.name.as_str())
    };
    let bias = 0x5555_0000_0000;
    assert_eq!(at(bias + 0x5000, 150), Some("buffer"));
    assert_eq!(at(bias + 0x5fff, 150), Some("buffer"));
    assert_eq!(at(bias + 0x6000, 150), None);
    assert_eq!(at(bias + 0x4003, 150), Some("total"));
    assert_eq!(at(bias + 0x4004, 150), None);
    assert_eq!(at(bias + 0x5000, 90), None, "not yet loaded");
    assert_eq!(trace.processes()[0].command, ["pricing"]);
    assert_eq!((trace.threads()[0].tid, trace.threads()[0].ended), (4711, Some(301)));
}

/// Facts in sections, which the text does not show.
#[test]
fn sections_of_the_newest() {
    let trace = Trace::open(&goldens().pop().unwrap().0).unwrap();
    let sites = trace.sites();
    let layouts = sites.layouts();
    let named = |name: &str| {
        let is_it = |layout: &&TypeLayout| layout.name.is_some_and(|id| sites.string(id) == name);
        layouts.all().iter().find(is_it).unwrap()
    };
    let text = |id: Option<StringId>| id.map_or("", |id| sites.string(id));
    let members = |layout: &TypeLayout| -> Vec<(MemberKind, String, u64, u64)> {
        let members = layout.members().iter();
        members.map(|m| (m.kind, text(m.name).to_owned(), m.first_bit, m.bits)).collect()
    };
    let arc = named("struct arc");
    assert!(matches!(arc.form, Form::Class(_)) && arc.bytes == 64);
    let expected = [
        (MemberKind::Base, "struct node".to_owned(), 0, 128),
        (MemberKind::Field, "cost".to_owned(), 131, 5),
        (MemberKind::Field, "a".to_owned(), 256, 256),
    ];
    assert_eq!(members(arc), expected);
    assert!(arc.members()[1].is_bit_field && !arc.members()[2].is_bit_field);

    // From the array that the arc ends with to what its elements are one of.
    let nodes = layouts.layout(arc.members()[2].ty.unwrap());
    let Form::Array { element: Some(node), ref extents } = nodes.form else { panic!("{nodes:?}") };
    assert_eq!(extents, &[2]);
    assert!(layouts.uses(node).is_watched() && !layouts.uses(node).is_cast());
    assert!(layouts.uses(node).escapes(0));
    let choice = layouts.layout(layouts.layout(node).members()[0].ty.unwrap());
    assert_eq!(
        members(choice),
        [
            (MemberKind::Discriminant, String::new(), 0, 64),
            (MemberKind::Variant(Some(7)), "key".to_owned(), 64, 64),
            (MemberKind::Variant(None), "cost".to_owned(), 64, 64),
        ]
    );

    let site_of = |member: &str| {
        let has_it = |site: &Site| site.member.is_some_and(|id| sites.string(id) == member);
        SiteId(sites.sites().iter().position(has_it).unwrap() as u32)
    };
    let (cost, key) = (site_of("cost"), site_of("key"));
    assert_eq!(layouts.layout(layouts.of_type(sites.site(cost).ty.unwrap()).unwrap()), arc);
    assert_eq!(layouts.of_type(sites.site(key).ty.unwrap()), None);
    assert_eq!(layouts.layout(layouts.of_global("buffer").unwrap()), nodes);
    assert_eq!(layouts.of_global("total"), None);

    // The cost is an access of the body and one of the loop; the key one of the vector's segment, too.
    let work = sites.work(cost).unwrap();
    assert_eq!((work.before, work.after), (3.5, 0.0));
    let work = sites.work(key).unwrap();
    assert_eq!((work.before, work.after), (4.0, 1.0));
    let update = sites.sites().iter().position(|site| site.kind == SiteKind::Update).unwrap() as u32;
    // The cost was loaded again since; of the update, nothing else stands behind it.
    let (cost_before, updated) = (Feed { site: cost, back: 1 }, Feed { site: SiteId(update), back: 0 });
    assert_eq!(*work.address, [[cost_before, updated].into()]);
    assert!(work.data.is_empty());
    let stored = sites
        .sites()
        .iter()
        .position(|site| site.kind == SiteKind::Store && site.flags == memlode_trace::format::flag::VECTOR);
    assert_eq!(sites.work(SiteId(stored.unwrap() as u32)).unwrap().data.len(), 1);

    // The branches behind the key depend on the cost; of those behind the gather nothing is known.
    let branches = sites.work(key).unwrap().branches.as_ref().unwrap();
    assert!(branches.iter().any(|group| **group == [Feed { site: cost, back: 0 }]), "{branches:?}");
    let gather = sites.sites().iter().position(|site| site.kind == SiteKind::Load && site.bytes == 4);
    assert_eq!(sites.work(SiteId(gather.unwrap() as u32)).unwrap().branches, None);

    // A reason that no reader knows is skipped.
    let left_out: Vec<_> = sites.left_out().iter().map(|(reason, count)| (*reason, *count)).collect();
    assert_eq!(left_out, [(LeftOut::Assembly, 2), (LeftOut::Filter, 200)]);
    // One of the calls is of a function that the unit has.
    let replayed = trace.replay(1, |_| ControlFlow::Continue(()));
    let executed: Vec<_> = replayed
        .unrecorded
        .iter()
        .flat_map(|(&id, &times)| sites.unrecorded(id).map(move |place| (place, times)))
        .map(|(place, times)| (place.reason, place.callee.map(|name| sites.string(name)), times))
        .collect();
    assert_eq!(executed, [(LeftOut::Call, Some("buffer"), 3), (LeftOut::Assembly, None, 3)]);
    let unmatched: Vec<_> = sites.unmatched().iter().map(|text| &**text).collect();
    assert_eq!(unmatched, ["pools: grab"]);

    let foreign = &trace.modules()[0].foreign;
    let functions: Vec<_> =
        foreign.functions.iter().map(|of| (of.name.as_str(), of.bytes, of.is_local)).collect();
    assert_eq!(functions, [("grind", 300, false), ("w", 40, true)]);
    assert!(foreign.has_libraries);

    let older = Trace::open(&format_folder().join("golden/v3")).unwrap();
    assert!(older.sites().left_out().is_empty() && older.sites().unmatched().is_empty());
    assert!(older.sites().layouts().all().is_empty() && older.sites().work(cost).is_none());
}
