//! The options of launchers: how many words follow each. From their help and manuals: Open MPI 4.1 and 5.0 (PRRTE 3), MPICH 4.0 (Hydra) and Intel
//! MPI, Slurm 22.05 to 24.05, Flux 0.78.

/// What an option of a launcher means for the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// So many words after it are its values.
    Values(usize),
    /// The command line names no program: it is named in a file, or the option needs none.
    NoProgram,
    Unknown,
}

/// How a launcher reads its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Open MPI's mpirun, and PRRTE's prterun: one dash or two.
    OpenMpi,
    /// MPICH's, and those that descend from it: one dash or two, and `-n=4`.
    Hydra,
    /// getopt_long: letters in groups, joined values, long options with `=`.
    Slurm,
    Flux,
}

/// Names of options, without dashes, separated by spaces.
struct Table {
    flags: &'static str,
    one: &'static str,
    two: &'static str,
    no_program: &'static str,
}

const OPEN_MPI: Table = Table {
    flags: "allow-run-as-root bind-to-core bind-to-socket bycore bynode byslot bysocket continuous d debug debug-daemons \
        debug-daemons-file debug-devel disable-recovery display-allocation display-devel-allocation display-devel-map \
        display-diffable-map display-map display-topo do-not-launch do-not-resolve enable-instant-on-support enable-recovery \
        fwd-mpirun-port get-stack-traces hetero-nodes index-argv-by-rank leave-session-attached merge-stderr-to-stdout nolocal \
        nooversubscribe noprefix novm output-proctable oversubscribe pernode preload-binary q quiet report-bindings \
        report-child-jobs-separately report-state-on-timeout s set-cwd-to-session-dir show-progress tag-output timestamp-output \
        tv use-hwthread-cpus use-regexp v verbose xml",
    one: "H N am bind-to c cartofile cf cpu-list cpu-set cpus-per-proc cpus-per-rank debugger default-hostfile display exec-agent \
        forward-signals hnp host hostfile initial-errhandler launch-agent machinefile map-by max-restarts max-vm-size \
        mca-base-param-file-prefix memory-alloc-kinds n np npernode npersocket ompi-server output output-directory \
        output-filename path personality pmixam ppr prefix preload-files pset rank-by rankfile report-events report-pid \
        report-uri rf rtos runtime-options slot-list stdin stream-buffering timeout tune wd wdir with-ft x xml-file xterm",
    two: "gmca gpmixmca gprtemca mca omca pmixmca prtemca",
    no_program: "V app h help version",
};

const HYDRA: Table = Table {
    flags: "dac debug disable-auto-cleanup disable-hostname-propagation disable-x enable-hostname-propagation enable-x envall \
        envnone genvall genvnone ilp64 l nolocal pmi-port prepend-rank print-all-exitcodes print-rank-map profile rr \
        skip-launch-node trace v verbose",
    one: "bind-to binding bootstrap bootstrap-exec demux envlist errfile errfile-pattern f genvlist gpus-per-proc grr host \
        hostfile hostlist hosts iface launcher launcher-exec localhost machine machinefile machinelist machines map-by membind n \
        nameserver np order-nodes outfile outfile-pattern output-from path perhost ppn prepend-pattern rmk topolib umask usize \
        wdir",
    two: "env genv",
    no_program: "configfile help info version V",
};

const SLURM: Table = Table {
    flags: "contiguous disable-status exact exclusive get-user-env hold immediate kill-on-bad-exit label nice \
        no-allocate no-kill overcommit overlap oversubscribe preserve-env propagate pty quiet quit-on-interrupt \
        reboot resv-ports send-libs share spread-job unbuffered use-min-nodes verbose whole compress interactive external \
        stepmgr async bcast",
    one: "account acctg-freq bb bbf bcast-exclude begin cluster-constraint clusters comment constraint container container-id \
        core-spec cores-per-socket cpu-bind cpu-freq cpus-per-gpu cpus-per-task chdir deadline delay-boot dependency \
        distribution epilog error exclude export extra extra-node-info gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket \
        gpus-per-task gres gres-flags het-group hint input job-name jobid licenses mail-type mail-user mcs-label mem mem-bind \
        mem-per-cpu mem-per-gpu mincpus mpi msg-timeout network nodefile pack-group nodelist nodes ntasks ntasks-per-core ntasks-per-gpu \
        ntasks-per-node ntasks-per-socket ntasks-per-tres open-mode output partition power prefer priority profile prolog qos \
        relative reservation signal slurmd-debug sockets-per-node switches task-epilog task-prolog thread-spec threads \
        threads-per-core time time-min tmp tree-width tres-bind tres-per-task uid gid wait wckey",
    two: "",
    no_program: "help multi-prog usage version",
};

const FLUX: Table = Table {
    flags: "debug dry-run exclusive label-io progress quiet unbuffered verbose watch jps wait",
    one: "add-file bank begin-time conf cores cores-per-slot cores-per-task cwd dependency env env-file env-remove error flags \
        gpus-per-node gpus-per-slot gpus-per-task input job-name log log-stderr nodes nslots ntasks output queue requires rlimit \
        setattr setopt signal taskmap tasks-per-core tasks-per-node time-limit urgency wait-event",
    two: "",
    no_program: "help",
};

/// Letters that take a value, those that do not, and those after which there is no program.
const SLURM_LETTERS: [&str; 3] = ["AbBcCdDeGiJLmMnNopqrStTwWx", "EHklOQsuvXZIK", "hV"];
const FLUX_LETTERS: [&str; 3] = ["BNScgnoqt", "luvx", "h"];

impl Dialect {
    /// What a word that begins with a dash means.
    #[must_use]
    pub fn meaning(self, word: &str) -> Meaning {
        match self {
            Self::OpenMpi => dashes(&OPEN_MPI, word),
            Self::Hydra => dashes(&HYDRA, word),
            Self::Slurm => getopt(&SLURM, SLURM_LETTERS, word),
            Self::Flux => getopt(&FLUX, FLUX_LETTERS, word),
        }
    }

    /// Whether `:` separates programs.
    #[must_use]
    pub fn has_sections(self) -> bool {
        self != Self::Flux
    }
}

impl Table {
    fn meaning(&self, name: &str) -> Meaning {
        let is = |list: &str| list.split(' ').any(|known| known == name);
        match () {
            () if is(self.no_program) => Meaning::NoProgram,
            () if is(self.flags) => Meaning::Values(0),
            () if is(self.one) => Meaning::Values(1),
            () if is(self.two) => Meaning::Values(2),
            () => Meaning::Unknown,
        }
    }
}

fn dashes(table: &Table, word: &str) -> Meaning {
    let name = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).unwrap_or(word);
    match name.split_once('=') {
        // A joined value; of two, the second one follows.
        Some((name, _)) => match table.meaning(name) {
            Meaning::Values(values) => Meaning::Values(values.saturating_sub(1)),
            other => other,
        },
        None => table.meaning(name),
    }
}

fn getopt(table: &Table, [with_value, without, no_program]: [&str; 3], word: &str) -> Meaning {
    if let Some(name) = word.strip_prefix("--") {
        return match (name.split_once('='), table.meaning(name.split('=').next().unwrap_or(name))) {
            (Some(_), Meaning::Values(_)) => Meaning::Values(0),
            (_, meaning) => meaning,
        };
    }
    for (at, letter) in word.char_indices().skip(1) {
        if no_program.contains(letter) {
            return Meaning::NoProgram;
        }
        if with_value.contains(letter) {
            return Meaning::Values(usize::from(at + letter.len_utf8() == word.len()));
        }
        if "IK".contains(letter) {
            // A value can only be joined.
            return Meaning::Values(0);
        }
        if !without.contains(letter) {
            return Meaning::Unknown;
        }
    }
    Meaning::Values(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that no option stands in two lists of a launcher.
    #[test]
    fn options_have_one_meaning() {
        for table in [&OPEN_MPI, &HYDRA, &SLURM, &FLUX] {
            let lists = [table.flags, table.one, table.two, table.no_program];
            let mut all: Vec<&str> = lists.iter().flat_map(|list| list.split(' ')).filter(|name| !name.is_empty()).collect();
            all.sort_unstable();
            let twice: Vec<&[&str]> = all.windows(2).filter(|pair| pair[0] == pair[1]).collect();
            assert!(twice.is_empty(), "{twice:?}");
        }
    }

    /// Check the meaning of words in each dialect.
    #[test]
    fn words_have_a_meaning() {
        use Dialect::{Flux, Hydra, OpenMpi, Slurm};
        for (dialect, word, meaning) in [
            (OpenMpi, "-np", Meaning::Values(1)),
            (OpenMpi, "--np", Meaning::Values(1)),
            (OpenMpi, "--mca", Meaning::Values(2)),
            (OpenMpi, "--map-by=core", Meaning::Values(0)),
            (OpenMpi, "--oversubscribe", Meaning::Values(0)),
            (OpenMpi, "--app", Meaning::NoProgram),
            (OpenMpi, "--new", Meaning::Unknown),
            (Hydra, "-genv", Meaning::Values(2)),
            (Hydra, "-n=4", Meaning::Values(0)),
            (Hydra, "-configfile", Meaning::NoProgram),
            (Slurm, "-n", Meaning::Values(1)),
            (Slurm, "-n4", Meaning::Values(0)),
            (Slurm, "-lun", Meaning::Values(1)),
            (Slurm, "-lun4", Meaning::Values(0)),
            (Slurm, "-I60", Meaning::Values(0)),
            (Slurm, "--ntasks=4", Meaning::Values(0)),
            (Slurm, "--ntasks", Meaning::Values(1)),
            (Slurm, "--exclusive", Meaning::Values(0)),
            (Slurm, "--multi-prog", Meaning::NoProgram),
            (Slurm, "--ntask", Meaning::Unknown),
            (Flux, "-n4", Meaning::Values(0)),
            (Flux, "-o", Meaning::Values(1)),
            (Flux, "--setopt=cpu-affinity=per-task", Meaning::Values(0)),
        ] {
            assert_eq!(dialect.meaning(word), meaning, "{dialect:?} {word}");
        }
    }
}
