// SPDX-License-Identifier: Apache-2.0 OR MIT
//! No harm, on real programs: common programs of a distribution give the same output, files and status with and without
//! `firsttouch profile`.

use firsttouch_e2e::case::Case;
use firsttouch_e2e::paths::target_dir;
use firsttouch_e2e::process::{Outcome, run};
use firsttouch_e2e::real::Program;
use firsttouch_e2e::skip::{lacks_tools, skipped};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn bash(test: &str, script: &str) -> Case {
    Case::new(test, ["bash", "-c", script])
}

/// A directory for the programs that these tests build. It stays after the tests, as a cache.
fn build_dir() -> PathBuf {
    let directory = target_dir().join("test-programs/real");
    fs::create_dir_all(&directory).expect("the build directory is made");
    directory
}

fn write_source(name: &str, text: &str) -> PathBuf {
    let path = build_dir().join(name);
    fs::write(&path, text).expect("the source is written");
    path
}

fn assert_built(outcome: &Outcome) {
    assert_eq!(outcome.status, 0, "the build failed: {}", outcome.stderr_text());
}

/// A Python that has NumPy.
pub(crate) fn numpy_python() -> Option<&'static str> {
    ["/usr/bin/python3", "python3"]
        .into_iter()
        .find(|python| Command::new(python).args(["-c", "import numpy"]).output().is_ok_and(|output| output.status.success()))
}

#[test]
fn python_with_numpy() {
    let Some(python) = numpy_python() else { return skipped("python_with_numpy", "no python3 with NumPy") };
    let script = "
import sys, threading, subprocess
import numpy as np
a = np.arange(1_500_000, dtype=np.float64).reshape(1500, 1000)
b = np.ones((1000, 400))
print((a @ b)[7, :3], int(a.sum()))
m = (np.arange(360_000, dtype=np.int64).reshape(600, 600) * 2654435761) % 1000
print(int((m @ m).trace()), float(np.round(np.linalg.norm(m.astype(float)), 6)))
results = [0] * 8
def work(i):
    x = np.full(300_000, i, dtype=np.int32)
    results[i] = int(np.sort(x[::-1].copy()).sum())
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(results)
print(subprocess.run([sys.executable, '-c', 'print(6 * 7)'], capture_output=True, text=True).stdout.strip())
print('to stderr', file=sys.stderr)
sys.exit(9)
";
    Case::new("python_with_numpy", [python, "-c", script]).status(9).also_with(&["--follow"]).check();
}

#[test]
fn python_multiprocessing() {
    let Some(python) = numpy_python() else { return skipped("python_multiprocessing", "no python3 with NumPy") };
    let script = "
import multiprocessing, numpy as np
def work(i):
    return int(np.full(200_000, i, dtype=np.int64).sum())
if __name__ == '__main__':
    for method in ('fork', 'spawn'):
        with multiprocessing.get_context(method).Pool(3) as pool:
            print(method, pool.map(work, range(12)))
";
    let setup = move |directory: &Path| fs::write(directory.join("pool.py"), script).expect("the script is written");
    Case::new("python_multiprocessing", [python, "pool.py"]).setup(setup).also_with(&["--follow"]).check();
}

#[test]
fn gcc_compiles() {
    if lacks_tools("gcc_compiles", &["gcc"]) {
        return;
    }
    let setup = |directory: &Path| {
        let mut source = String::from("#include <stdio.h>\n#include <stdlib.h>\n");
        for i in 0..400 {
            source += &format!(
                "double f{i}(const double *x, int n) {{ double s = {i}; for (int i = 0; i < n; i++) s += x[i] * {i}; \
                 return s; }}\n"
            );
        }
        source += "int main(void) { double x[3] = {1, 2, 3}; printf(\"%g\\n\", f7(x, 3)); int unused; }\n";
        fs::write(directory.join("many.c"), source).expect("the source is written");
    };
    bash("gcc_compiles", "gcc -O2 -g -Wall -c many.c -o many.o && gcc many.o -o many && ./many && gcc missing.c")
        .setup(setup)
        .artifact("many.o")
        .artifact("many")
        .status(1)
        .also_with(&["--follow"])
        .check();
    Case::new("gcc_compiles", ["gcc", "-O2", "-pipe", "-c", "many.c", "-o", "many.o"]).setup(setup).artifact("many.o").check();
}

#[test]
fn sqlite3_runs_sql() {
    if lacks_tools("sqlite3_runs_sql", &["sqlite3"]) {
        return;
    }
    let sql = "
PRAGMA page_size = 4096;
CREATE TABLE numbers (n INTEGER PRIMARY KEY, text TEXT);
WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 200000)
INSERT INTO numbers SELECT n, printf('%08x', n * 2654435761 % 4294967296) FROM c;
CREATE INDEX by_text ON numbers(text);
SELECT count(*), sum(n), min(text), max(text) FROM numbers;
SELECT text FROM numbers ORDER BY text DESC LIMIT 5;
SELECT substr(text, 1, 1) AS first, count(*) FROM numbers GROUP BY first ORDER BY first;
SELECT nonsense;
";
    Case::new("sqlite3_runs_sql", ["sqlite3", "-batch", "test.db"])
        .input(sql)
        .artifact("test.db")
        .status(1)
        .also_with(&["--min-size", "1024"])
        .check();
}

#[test]
fn git_commits() {
    if lacks_tools("git_commits", &["git", "bash"]) {
        return;
    }
    let script = "set -e
git init -q -b main .
for i in $(seq 1 60); do seq $i $((i * 50)) > file$i.txt; done
git add . && git commit -q -m first
for i in $(seq 1 60); do echo changed >> file$i.txt; done
git commit -q -a -m second
git log --stat --format='%H %an %ad %s' | tail -n 70
git gc -q && git fsck --full && git rev-parse HEAD && git diff --shortstat HEAD~1
git checkout -q no-such-branch";
    let mut case = bash("git_commits", script).status(1).also_with(&["--follow"]);
    for who in ["AUTHOR", "COMMITTER"] {
        case = case
            .environment(&format!("GIT_{who}_NAME"), "Nobody")
            .environment(&format!("GIT_{who}_EMAIL"), "nobody@example.org")
            .environment(&format!("GIT_{who}_DATE"), "2001-02-03T04:05:06Z");
    }
    case.environment("GIT_CONFIG_NOSYSTEM", "1").environment("GIT_CONFIG_GLOBAL", "/dev/null").check();
}

#[test]
fn tar_and_zstd() {
    if lacks_tools("tar_and_zstd", &["tar", "zstd", "bash", "sha256sum"]) {
        return;
    }
    let script = "set -e -o pipefail
mkdir data; for i in $(seq 1 40); do seq 1 $((i * 700)) > data/$i; done
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -cf - data | zstd -q -T2 -9 -c > data.tar.zst
zstd -q -t data.tar.zst
mkdir back; zstd -q -d -c data.tar.zst | tar -C back -xf -
diff -r data back/data && cat back/data/* | sha256sum
tar -xf no-such-file.tar";
    bash("tar_and_zstd", script).artifact("data.tar.zst").status(2).also_with(&["--follow"]).check();
    let setup = |directory: &Path| {
        let text: Vec<u8> = (0..8_000_000_u32).map(|i| (i / 7 % 251) as u8).collect();
        fs::write(directory.join("big"), text).expect("the file is written");
    };
    Case::new("tar_and_zstd", ["zstd", "-q", "-T4", "-12", "-k", "big", "-o", "big.zst"]).setup(setup).artifact("big.zst").check();
}

#[test]
fn bash_pipelines() {
    if lacks_tools("bash_pipelines", &["bash", "sort", "seq", "md5sum", "yes"]) {
        return;
    }
    bash("bash_pipelines", "seq 1 100000 | sort -R --random-source=<(yes) | sort -n | md5sum").also_with(&["--follow"]).check();
    let script = "set -o pipefail
trap 'echo exit trap' EXIT
(echo in a subshell; exit 4); echo $?
yes | head -n 3; echo ${PIPESTATUS[@]}
cat <<< 'here string' | tr a-z A-Z
trap 'echo usr1' USR1; kill -USR1 $$ & wait $!
wait; coproc cat; echo through a coprocess >&${COPROC[1]}; read -r line <&${COPROC[0]}; echo $line
echo to stderr >&2; false | true; exit 77";
    bash("bash_pipelines", script).status(77).also_with(&["--follow"]).check();
}

#[test]
fn go_static_binary() {
    if lacks_tools("go_static_binary", &["go"]) {
        return;
    }
    let source = write_source(
        "gostatic.go",
        r#"package main

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
)

func main() {
	var wait sync.WaitGroup
	sums := make([]int, 50)
	for i := range sums {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for round := 0; round < 20; round++ {
				block := make([]byte, 1<<20)
				for j := range block {
					block[j] = byte(i)
				}
				sums[i] += int(block[len(block)-1])
			}
		}()
	}
	wait.Wait()
	fmt.Println(sums)
	out, err := exec.Command("/bin/echo", "from a child").Output()
	fmt.Print(string(out), err, "\n")
	fmt.Fprintln(os.Stderr, "to stderr")
	defer func() { fmt.Println("recovered:", recover()); os.Exit(3) }()
	var nothing *int
	fmt.Println(*nothing)
}
"#,
    );
    let binary = build_dir().join("gostatic");
    let mut build = Command::new("go");
    build.args(["build", "-o"]).arg(&binary).arg(&source).current_dir(build_dir());
    assert_built(&run(build.envs([("CGO_ENABLED", "0"), ("GOFLAGS", ""), ("GOTOOLCHAIN", "local")])));
    Case::new("go_static_binary", [binary]).status(3).also_with(&["--follow"]).check();
}

#[test]
fn rust_static_binary() {
    if lacks_tools("rust_static_binary", &["rustc"]) {
        return;
    }
    let source = write_source(
        "ruststatic.rs",
        r#"use std::thread;
fn main() {
    std::panic::set_hook(Box::new(|_| eprintln!("a thread panics"))); // the usual message has the thread's id
    let threads: Vec<_> = (0..8_u64)
        .map(|i| thread::spawn(move || (0..2_000_000_u64).map(|x| x.wrapping_mul(i)).collect::<Vec<_>>().iter().sum::<u64>()))
        .collect();
    for thread in threads {
        println!("{}", thread.join().unwrap());
    }
    println!("{:?}", thread::spawn(|| panic!("on purpose")).join().is_err());
    println!("{:?}", std::process::Command::new("/bin/echo").arg("from a child").output().unwrap().stdout);
    std::process::exit(5);
}
"#,
    );
    for (name, flags) in [("ruststatic", &["-C", "target-feature=+crt-static"][..]), ("rustdynamic", &[])] {
        let binary = build_dir().join(name);
        let mut build = Command::new("rustc");
        build.args(["--edition", "2021", "-O", "-g", "-o"]).arg(&binary).args(flags).arg(&source);
        assert_built(&run(&mut build));
        Case::new(name, [binary]).status(5).also_with(&["--follow"]).check();
    }
}

#[test]
fn java_virtual_machine() {
    let name = "java_virtual_machine";
    if lacks_tools(name, &["java"]) {
        return;
    }
    let modules = run(Command::new("java").arg("--list-modules")).stdout_text();
    if !modules.contains("jdk.compiler") {
        return skipped(name, "this Java has no compiler (install a JDK, as `make deps` does)");
    }
    let source = r#"
import java.util.stream.*;

public class Threads {
    static String text;

    public static void main(String[] arguments) throws Exception {
        Thread[] threads = new Thread[8];
        long[] sums = new long[threads.length];
        for (int i = 0; i < threads.length; i++) {
            int number = i;
            threads[i] = new Thread(() -> {
                for (int round = 0; round < 30; round++) {
                    long[] block = new long[100_000];
                    for (int j = 0; j < block.length; j++)
                        block[j] = j * (long) number;
                    sums[number] += LongStream.of(block).sum();
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads)
            thread.join();
        System.out.println(LongStream.of(sums).boxed().collect(Collectors.toList()));
        int caught = 0;
        for (int i = 0; i < 20_000; i++)
            try { // the JVM turns a SIGSEGV of its own into this exception
                caught += text.length();
            } catch (NullPointerException expected) {
                caught++;
            }
        System.out.println("caught " + caught);
        System.err.println("to stderr");
        System.exit(6);
    }
}
"#;
    let source = source.to_owned();
    let setup = move |directory: &Path| {
        fs::write(directory.join("Threads.java"), &source).expect("the source is written");
    };
    // Without UsePerfData, because all JVMs on the machine share its directory, and its clean-up differs from run to run.
    Case::new(name, ["java", "-Xmx256m", "-XX:-UsePerfData", "Threads.java"]).setup(setup).status(6).check();
}

/// Check the programs of `make noharm-all` that the tests' own tools include, each in less than a second.
#[test]
fn programs_of_the_list() {
    let names = ["perl", "dash", "make", "gzip and bzip2", "rustc", "openmpi", "qemu", "unshare"];
    let programs: Vec<Program> = Program::all().into_iter().filter(|program| names.contains(&program.name.as_str())).collect();
    assert_eq!(programs.len(), names.len());
    for program in programs {
        let missing = program.missing();
        if missing.is_empty() { program.check() } else { skipped(&program.name, &format!("no {}", missing.join(", "))) }
    }
}
