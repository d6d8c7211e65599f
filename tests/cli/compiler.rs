//! `memlode cc` and `memlode c++`: which arguments are added, to which command lines.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

use crate::{assert_one_sentence, executables, installation, memlode, stderr, stdout};

/// A folder with an installation of empty files and compilers that only print their arguments.
struct Stage {
    folder: TempDir,
}

impl Stage {
    fn new() -> Stage {
        let folder = TempDir::new().expect("a temporary folder");
        let stage = Stage { folder };
        for file in [
            "home/lib/memlode-pass-22.so",
            "home/lib/memlode-pass-19.so",
            "home/lib/libmemlode_record.so",
            "home/lib/libmemlode_record.a",
            "home/lib/libmemlode_stdcxx.a",
        ] {
            stage.write(file, "");
        }
        stage.compiler("bin/clang-22");
        stage.compiler("bin/clang++-22");
        stage
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("UTF-8").to_string()
    }

    fn write(&self, name: &str, content: &str) {
        let file = self.folder.path().join(name);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        fs::write(file, content).expect("a file");
    }

    fn compiler(&self, name: &str) {
        self.script(name, "echo \"$0 $*\"; exit 7");
    }

    fn script(&self, name: &str, body: &str) {
        let file = self.folder.path().join(name);
        fs::create_dir_all(file.parent().expect("a parent")).expect("a folder");
        executables::write(&file, format!("#!/bin/sh\n{body}\n").as_bytes());
    }

    fn memlode(&self) -> Command {
        let mut command = memlode();
        command
            .env("MEMLODE_HOME", self.path("home"))
            .env("PATH", format!("{}:/usr/bin:/bin", self.path("bin")))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .current_dir(self.folder.path());
        command
    }

    /// The line that `--print` shows, with the folder's name as `~`.
    fn printed(&self, command: &str, arguments: &str) -> String {
        let output = self
            .memlode()
            .args([command, "--print"])
            .args(arguments.split_whitespace())
            .output()
            .expect("memlode runs");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).trim_end().replace(&self.path(""), "~/")
    }
}

const COMMAND: &str = "-frecord-command-line";
const PLUGIN: &str = "-frecord-command-line -fpass-plugin=~/home/lib/memlode-pass-22.so";
const RUNTIME: &str = "-L~/home/lib -lmemlode_record -Xlinker -rpath -Xlinker ~/home/lib -Xlinker --build-id";

const STATIC_RUNTIME: &str =
    "-L~/home/lib -lmemlode_record -Xlinker -e -Xlinker __memlode_start -Xlinker --build-id";

#[test]
fn additions_to_command_lines_of_all_shapes() {
    let stage = Stage::new();
    stage.write("objects.rsp", "a.o b.o -o prog");
    stage.write("compile.rsp", "-c 'my file.c' -g1");
    let lto = "-fuse-ld=lld-22 -Xlinker --load-pass-plugin=~/home/lib/memlode-pass-22.so";
    // arguments → what comes before and after them
    let cases: &[(&str, &str, &str)] = &[
        ("x.c", &format!("-g {PLUGIN}"), RUNTIME),
        ("-O2 x.c -o x", &format!("-g {PLUGIN}"), RUNTIME),
        ("-O2 -c x.c -o x.o", &format!("-g {PLUGIN}"), ""),
        ("-g -c x.c", PLUGIN, ""),
        ("-g0 -c x.c", PLUGIN, ""),
        ("-ggdb3 -c x.c", PLUGIN, ""),
        ("-gz -c x.c", &format!("-g {PLUGIN}"), ""),
        ("-S x.c", &format!("-g {PLUGIN}"), ""),
        ("-E x.c", "", ""),
        ("-E -", "", ""),
        ("-M x.c", "", ""),
        ("-MM x.c", "", ""),
        ("-MD -MF x.d -MT x.o -c x.c", &format!("-g {PLUGIN}"), ""),
        ("-fsyntax-only x.c", "", ""),
        ("-c x.s", "", ""),
        ("-c x.S", "", ""),
        ("x.s y.o -o x", "", RUNTIME),
        ("x.c y.s z.o libw.a -lm", &format!("-g {PLUGIN}"), RUNTIME),
        ("a.o b.o -o x", "", RUNTIME),
        ("-shared -o libx.so a.o", "", RUNTIME),
        ("-shared -fPIC -o libx.so a.c", &format!("-g {PLUGIN}"), RUNTIME),
        ("-static a.o", "", STATIC_RUNTIME),
        ("-static-pie a.o", "", STATIC_RUNTIME),
        ("-static -nostartfiles a.o", "", "-L~/home/lib -lmemlode_record -Xlinker --build-id"),
        ("-nostdlib a.o", "", RUNTIME),
        ("-r a.o b.o -o c.o", "", ""),
        ("-r a.c -o c.o", &format!("-g {PLUGIN}"), ""),
        ("-ffreestanding -c x.c", "", ""),
        ("-ffreestanding -nostdlib x.c", "", ""),
        ("-flto -O2 -c x.c", &format!("-g {COMMAND}"), ""),
        ("-flto=thin -g x.o", "", &format!("{lto} {RUNTIME}")),
        ("-O0 -flto=thin x.o", "", &format!("{lto} -Xlinker --lto-O1 {RUNTIME}")),
        ("-flto x.c", &format!("-g {COMMAND}"), &format!("{lto} {RUNTIME}")),
        ("-flto -fno-lto -c x.c", &format!("-g {PLUGIN}"), ""),
        ("-Wl,--build-id=none a.o", "", RUNTIME.trim_end_matches(" -Xlinker --build-id")),
        ("-x c -c foo", &format!("-g {PLUGIN}"), ""),
        ("-xc++ -c -", &format!("-g {PLUGIN}"), ""),
        ("-x assembler -c foo.c", "", ""),
        ("-x c-header foo.h", "", ""),
        ("foo.h", "", ""),
        ("x.ll -c", &format!("-g {PLUGIN}"), ""),
        ("@objects.rsp", "", RUNTIME),
        ("@compile.rsp", PLUGIN, ""),
        ("-Xclang -load -Xclang x.c -c y.s", "", ""),
        ("-arch x86_64 -c x.c", &format!("-g {PLUGIN}"), ""),
        ("-o x.c y.o", "", RUNTIME),
        ("-I x.c -c y.s", "", ""),
        ("-include x.c y.o", "", RUNTIME),
        ("--version", "", ""),
        ("-v", "", ""),
        ("-dumpmachine", "", ""),
        ("-print-search-dirs", "", ""),
        ("--print-prog-name=ld", "", ""),
        ("-print-file-name=libc.so", "", ""),
        ("-Wall -Werror", "", ""),
        ("-fstack-clash-protection -fno-plt -Wno-unknown -c x.c", &format!("-g {PLUGIN}"), ""),
    ];
    for (arguments, before, after) in cases {
        let words: Vec<&str> = ["~/bin/clang-22", before, arguments, after]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        assert_eq!(stage.printed("cc", arguments), words.join(" "), "{arguments}");
    }
}

#[test]
fn after_a_double_dash_there_are_only_inputs() {
    let stage = Stage::new();
    assert_eq!(
        stage.printed("cc", "-- -o x -- x.c"),
        format!("~/bin/clang-22 -g {PLUGIN} -o x {RUNTIME} -- x.c"),
        "the first `--` ends memlode's own options, the second is clang's"
    );
}

#[test]
fn cxx_runs_the_cxx_driver() {
    let stage = Stage::new();
    assert_eq!(
        stage.printed("c++", "-c x.cc"),
        format!("~/bin/clang++-22 -g {} -c x.cc", PLUGIN.replace(" ", " -fstandalone-debug "))
    );
}

#[test]
fn fc_runs_flang() {
    let stage = Stage::new();
    let plugin = PLUGIN.trim_start_matches(&format!("{COMMAND} "));
    let output = stage
        .memlode()
        .args(["fc", "-c", "x.f90"])
        .env("PATH", stage.path("bin"))
        .output()
        .expect("memlode runs");
    assert_one_sentence(&output, &["flang-22 is not on the path", "apt-get install flang-22"]);
    stage.compiler("bin/flang-22");
    stage.write("home/include/memlode.h", ""); // for C and C++ alone
    assert_eq!(
        stage.printed("fc", "-c -J modules x.f90"),
        format!("~/bin/flang-22 -g {plugin} -c -J modules x.f90")
    );
}

#[test]
fn the_compiler_takes_our_place_and_its_status_is_ours() {
    let stage = Stage::new();
    let output = stage.memlode().args(["cc", "-c", "x.c"]).output().expect("memlode runs");
    assert_eq!(output.status.code(), Some(7));
    assert!(stdout(&output).ends_with("-c x.c\n"), "{}", stdout(&output));
    assert_eq!(stderr(&output), "");
}

/// Make and others end a compiler that they do not need any more.
#[test]
fn a_signal_to_us_is_one_to_the_compiler() {
    let stage = Stage::new();
    let compiler = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done";
    stage.script("bin/clang-22", compiler);
    let mut memlode = std::process::Command::new(assert_cmd::cargo::cargo_bin!("memlode"))
        .args(["cc", "-c", "x.c"])
        .env("MEMLODE_HOME", stage.path("home"))
        .env("PATH", format!("{}:/usr/bin:/bin", stage.path("bin")))
        .env_remove("MEMLODE_CC")
        .env_remove("MEMLODE_CCACHE")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("memlode runs");
    let mut ready = [0; 6];
    std::io::Read::read_exact(memlode.stdout.as_mut().expect("piped"), &mut ready).expect("it says so");
    let sent = std::process::Command::new("kill").args(["-s", "TERM", &memlode.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
    assert_eq!(memlode.wait().expect("it ends").code(), Some(9));
}

#[test]
fn links_named_after_the_compilers_are_compilers() {
    let stage = Stage::new();
    let binary = assert_cmd::cargo::cargo_bin!("memlode");
    for (name, compiler) in [("memlode-cc", "clang-22"), ("memlode-c++", "clang++-22")] {
        symlink(binary, stage.path(name)).expect("a link");
        let output = Command::new(stage.path(name))
            .args(["--memlode-print", "-c", "x.c"])
            .env("MEMLODE_HOME", stage.path("home"))
            .env("PATH", stage.path("bin"))
            .env_remove("MEMLODE_CC")
            .env_remove("MEMLODE_CXX")
            .output()
            .expect("memlode runs");
        assert!(stdout(&output).contains(&format!("/bin/{compiler} -g ")), "{}", stdout(&output));
    }
}

#[test]
fn allocators_reach_the_plug_in_through_the_environment() {
    let stage = Stage::new();
    stage.write("pools.toml", "");
    stage.script("bin/clang-22", "echo \"$MEMLODE_ALLOCATORS\"");
    let output = stage
        .memlode()
        .args(["cc", "--allocators", "pools.toml", "-c", "x.c"])
        .output()
        .expect("memlode runs");
    assert_eq!(stdout(&output).trim_end(), stage.path("pools.toml"));

    let output =
        stage.memlode().args(["cc", "--allocators=none.toml", "-c", "x.c"]).output().expect("memlode runs");
    assert_eq!(output.status.code(), Some(1));
    assert_one_sentence(&output, &["none.toml", "there is no such file"]);
}

#[test]
fn a_program_as_written_is_recorded_by_its_compiler_and_not_by_its_linker() {
    let stage = Stage::new();
    let print = |arguments: &str| stage.printed("cc", arguments);
    let variable = "MEMLODE_FIDELITY=source ~/bin/clang-22";
    assert_eq!(print("--fidelity=source -c x.c"), format!("{variable} -g {PLUGIN} -c x.c"));
    assert_eq!(print("--fidelity source -flto -c x.c"), format!("{variable} -g {PLUGIN} -flto -c x.c"));
    assert_eq!(
        print("--fidelity source -flto x.o"),
        format!("{variable} -flto x.o -fuse-ld=lld-22 {RUNTIME}")
    );
    let mut by_variable = stage.memlode();
    by_variable.env("MEMLODE_FIDELITY", "source").args(["cc", "--print", "-flto", "-c", "x.c"]);
    assert!(stdout(&by_variable.output().expect("memlode runs")).contains("-fpass-plugin="));
    let output = stage.memlode().args(["cc", "--fidelity=full", "-c", "x.c"]).output().expect("memlode runs");
    assert_one_sentence(&output, &["--fidelity is 'full'", "'optimised' or 'source'"]);
}

#[test]
fn an_option_of_ours_behind_one_of_clangs_is_clangs() {
    let stage = Stage::new();
    assert_eq!(stage.printed("cc", "-c x.c --print"), format!("~/bin/clang-22 -g {PLUGIN} -c x.c --print"));
}

#[test]
fn clang_19_with_its_plug_in_serves_where_22_is_missing() {
    let stage = Stage::new();
    fs::remove_file(stage.path("bin/clang-22")).expect("removed");
    stage.compiler("bin/clang-19");
    let printed =
        stage.memlode().env("PATH", stage.path("bin")).args(["cc", "--print", "-c", "x.c"]).output();
    let printed = stdout(&printed.expect("memlode runs"));
    assert!(printed.contains("clang-19") && printed.contains("memlode-pass-19.so"), "{printed}");
}

#[test]
fn another_compiler_by_name() {
    let stage = Stage::new();
    let run = |compiler: &str| {
        stage
            .memlode()
            .env("MEMLODE_CC", compiler)
            .args(["cc", "--print", "-c", "x.c"])
            .output()
            .expect("runs")
    };
    // No version in the name: asked once, and remembered until the file changes.
    stage.script("mine", &format!("echo asked >>{}; echo 19", stage.path("log")));
    for _ in 0..3 {
        assert!(stdout(&run(&stage.path("mine"))).contains("memlode-pass-19.so"));
    }
    assert_eq!(fs::read_to_string(stage.path("log")).expect("asked").lines().count(), 1);

    stage.script("old", "echo 17");
    assert_one_sentence(&run(&stage.path("old")), &["MEMLODE_CC", "version 17", "22 and 19"]);
    stage.script("gcc", "echo __clang_major__");
    assert_one_sentence(&run(&stage.path("gcc")), &["MEMLODE_CC", "is not clang"]);
    assert_one_sentence(
        &run("/does/not/exist"),
        &["MEMLODE_CC", "/does/not/exist", "not an executable file"],
    );
}

#[test]
fn what_is_missing_is_named_with_the_way_to_get_it() {
    let stage = Stage::new();
    let output =
        stage.memlode().env("PATH", "/nowhere").args(["cc", "-c", "x.c"]).output().expect("memlode runs");
    assert_eq!(output.status.code(), Some(1));
    assert_one_sentence(&output, &["clang-22", "apt-get install clang-22 lld-22", "MEMLODE_CC"]);

    fs::remove_file(stage.path("home/lib/memlode-pass-22.so")).expect("removed");
    let alone = || {
        let mut memlode = stage.memlode();
        memlode.env("PATH", stage.path("bin"));
        memlode
    };
    let output = alone().args(["cc", "-c", "x.c"]).output().expect("memlode runs");
    assert_one_sentence(&output, &["memlode-pass-22.so is missing", "make"]);
    // A question to the compiler needs no plug-in.
    let output = alone().args(["cc", "--version"]).output().expect("memlode runs");
    assert_eq!(output.status.code(), Some(7));

    fs::remove_file(stage.path("home/lib/libmemlode_record.so")).expect("removed");
    let output = alone().args(["cc", "a.o"]).output().expect("memlode runs");
    assert_one_sentence(&output, &["libmemlode_record.so is missing"]);

    let output = stage.memlode().env("MEMLODE_HOME", "/nowhere").args(["cc", "a.o"]).output().expect("runs");
    assert_one_sentence(&output, &["MEMLODE_HOME is /nowhere"]);
}

#[test]
fn odd_characters_survive_quoting() {
    let stage = Stage::new();
    let output = stage
        .memlode()
        .args(["cc", "--print", "-DV=\"a b\"", "-c", "it's.c"])
        .output()
        .expect("memlode runs");
    assert!(stdout(&output).trim_end().ends_with(r#"'-DV="a b"' -c 'it'\''s.c'"#), "{}", stdout(&output));
}

/// Two files: what one knows of the other's data has to meet in the program, however it is linked.
#[test]
fn programs_of_all_kinds_are_recorded() {
    let folder = TempDir::new().expect("a temporary folder");
    let sources = [
        (
            "a.c",
            "#include <stdlib.h>\nstruct s { long a, b[7]; };\nlong f(struct s *, long);\n\
                 int main(int argc, char **argv) { (void)argv; struct s *p = calloc(10000, sizeof *p); \
                 p[argc].a = argc; return f(p, 10000) - argc; }\n",
        ),
        (
            "b.c",
            "struct s { long a, b[7]; };\n\
                 long f(struct s *p, long n) { long t = 0; for (long i = 0; i < n; i++) t += p[i].a; return t; }\n",
        ),
    ];
    for (name, text) in sources {
        fs::write(folder.path().join(name), text).expect("a file");
    }
    let shell = |script: &str| {
        let output = std::process::Command::new("sh")
            .args(["-ec", script])
            .env("MEMLODE_HOME", installation())
            .env("M", assert_cmd::cargo::cargo_bin!("memlode"))
            .current_dir(folder.path())
            .output()
            .expect("sh runs");
        assert!(output.status.success(), "{script}: {}", stderr(&output));
        stdout(&output)
    };
    for build in [
        "$M cc -O2 a.c b.c -o prog",
        "$M cc -O2 -c a.c && $M cc -O2 -c b.c && $M cc a.o b.o -o prog",
        "$M cc -O2 -S b.c && $M cc -O2 a.c b.s -o prog",
        "$M cc -O2 -static a.c b.c -o prog",
        "$M cc -O2 -static-pie -fPIE a.c b.c -o prog",
        "$M cc -O2 -no-pie a.c b.c -o prog",
        "$M cc -O2 -flto -c a.c && $M cc -O2 -flto -c b.c && $M cc -O2 -flto a.o b.o -o prog",
        "$M cc -O2 -flto=thin a.c b.c -o prog",
        "$M cc -O0 -flto=thin a.c b.c -o prog",
        "$M cc -O2 -fPIC -shared b.c -o libb.so && $M cc -O2 a.c -L. -lb -Wl,-rpath,$PWD -o prog",
        "echo -O2 a.c b.c -o prog > all.rsp && $M cc @all.rsp",
        "$M cc -O2 -c b.c && $M cc -O2 -r b.o -o c.o && $M cc -O2 a.c c.o -o prog",
    ] {
        shell(build);
        let report = shell("rm -rf t && $M record -o t ./prog 2>/dev/null && $M report t --json -m generic");
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        let rows = |table: &str| report[table].as_array().expect("a table").clone();
        let is_it = |row: &serde_json::Value| {
            (&row["type"], &row["member"], &row["accesses"]) == (&"s".into(), &"a".into(), &10_000.into())
        };
        assert!(rows("lines").iter().any(is_it), "{build}: {report}");
        assert!(rows("objects").iter().any(|object| object["bytes"] == 640_000), "{build}: {report}");
    }
}

#[test]
fn a_compiler_error_is_the_compilers() {
    let folder = TempDir::new().expect("a temporary folder");
    fs::write(folder.path().join("x.c"), "int main(void) { return missing; }\n").expect("a file");
    let output = memlode()
        .env("MEMLODE_HOME", installation())
        .current_dir(folder.path())
        .args(["cc", "-c", "x.c"])
        .output()
        .expect("memlode runs");
    assert_eq!(output.status.code(), Some(1));
    let text = stderr(&output);
    assert!(text.starts_with("x.c:1:25: error:") && !text.contains("memlode"), "{text}");
    assert!(!Path::new(&folder.path().join("x.o")).exists());
}
