//! The place of a process in its job, from environment variables only.

use firsttouch_model::rows::RankPlace;

/// Looks up an environment variable.
pub type Lookup<'a> = &'a dyn Fn(&str) -> Option<String>;

const OPEN_MPI: &str = "Open MPI";
const MPICH: &str = "MPICH";
const MVAPICH: &str = "MVAPICH";
const PMIX: &str = "PMIx";
const PMI: &str = "PMI";
const FLUX: &str = "Flux";
const SLURM: &str = "Slurm";

/// Numbers of steps from here on are no numbers: Slurm's batch script, its interactive step (salloc) and others.
const FIRST_SPECIAL_STEP: u32 = 0xffff_fff0;

/// The variables of a launcher. Where several are named, the first one that is set counts.
struct Family {
    launcher: &'static str,
    rank: &'static str,
    size: &'static [&'static str],
    local_rank: &'static [&'static str],
    local_size: &'static [&'static str],
    job: fn(Lookup<'_>) -> Option<String>,
}

/// The families whose processes know their own number, before those of job schedulers: in a job of Slurm, Open MPI's mpirun starts one helper
/// a host by srun, and Slurm's variables number the helpers.
const FAMILIES: [Family; 5] = [
    Family {
        launcher: OPEN_MPI,
        rank: "OMPI_COMM_WORLD_RANK",
        size: &["OMPI_COMM_WORLD_SIZE"],
        local_rank: &["OMPI_COMM_WORLD_LOCAL_RANK"],
        local_size: &["OMPI_COMM_WORLD_LOCAL_SIZE"],
        job: job_of_open_mpi,
    },
    Family {
        launcher: MVAPICH,
        rank: "MV2_COMM_WORLD_RANK",
        size: &["MV2_COMM_WORLD_SIZE"],
        local_rank: &["MV2_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"],
        local_size: &["MV2_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"],
        job: |variable| variable("PMI_JOBID"),
    },
    Family {
        launcher: PMIX,
        rank: "PMIX_RANK",
        // PMIx has no variable for the size; what started the process may have one.
        size: &["PMI_SIZE", "FLUX_JOB_SIZE", "SLURM_STEP_NUM_TASKS"],
        local_rank: &["PMIX_LOCAL_RANK", "FLUX_TASK_LOCAL_ID", "SLURM_LOCALID"],
        local_size: &["PMIX_LOCAL_SIZE"],
        job: |variable| variable("PMIX_NAMESPACE"),
    },
    Family {
        launcher: MPICH,
        rank: "PMI_RANK",
        size: &["PMI_SIZE"],
        local_rank: &["MPI_LOCALRANKID"],
        local_size: &["MPI_LOCALNRANKS"],
        job: |variable| variable("PMI_JOBID"),
    },
    Family {
        launcher: FLUX,
        rank: "FLUX_TASK_RANK",
        size: &["FLUX_JOB_SIZE"],
        local_rank: &["FLUX_TASK_LOCAL_ID"],
        local_size: &[],
        job: |variable| variable("FLUX_JOB_ID"),
    },
];

/// The place of the process with this environment; `None` if no launcher of ranks started it. [`RankPlace::bound_cpus`] stays empty.
#[must_use]
pub fn place(variable: Lookup<'_>) -> Option<RankPlace> {
    let known = FAMILIES.iter().find_map(|family| family.place(variable));
    let flux = FAMILIES.iter().filter(|family| family.launcher == FLUX).find_map(|family| family.place(variable));
    let scheduler = flux.or_else(|| slurm(variable));
    match (known, scheduler) {
        (Some(place), Some(scheduler)) if is_by(&place, &scheduler) => Some(together(place, scheduler)),
        (Some(place), _) => Some(named(place, variable)),
        (None, scheduler) => scheduler,
    }
}

/// Whether a scheduler started the rank itself: it then gives the interfaces of PMI and PMIx too.
fn is_by(place: &RankPlace, scheduler: &RankPlace) -> bool {
    [PMIX, MPICH].contains(&place.launcher.as_str()) && (place.rank, place.size) == (scheduler.rank, scheduler.size)
}

fn together(place: RankPlace, scheduler: RankPlace) -> RankPlace {
    RankPlace {
        local_rank: scheduler.local_rank.or(place.local_rank),
        local_size: scheduler.local_size.or(place.local_size),
        job: scheduler.job.or(place.job),
        ..scheduler
    }
}

/// MPICH's launcher sets more variables than PMI has.
fn named(place: RankPlace, variable: Lookup<'_>) -> RankPlace {
    let is_pmi_alone = place.launcher == MPICH && variable("MPI_LOCALRANKID").is_none();
    if is_pmi_alone { RankPlace { launcher: PMI.to_owned(), ..place } } else { place }
}

impl Family {
    fn place(&self, variable: Lookup<'_>) -> Option<RankPlace> {
        let first = |names: &[&str]| names.iter().find_map(|name| number(variable, name));
        let place = RankPlace {
            rank: number(variable, self.rank)?,
            size: first(self.size)?,
            local_rank: first(self.local_rank),
            local_size: first(self.local_size),
            launcher: self.launcher.to_owned(),
            job: (self.job)(variable),
            bound_cpus: None,
        };
        (place.rank < place.size).then_some(place)
    }
}

fn number(variable: Lookup<'_>, name: &str) -> Option<u32> {
    variable(name)?.trim().parse().ok()
}

/// The number of the job, which is the hash of mpirun's process number, and the random key of its messages.
fn job_of_open_mpi(variable: Lookup<'_>) -> Option<String> {
    let number = variable("PMIX_NAMESPACE").or_else(|| variable("OMPI_MCA_ess_base_jobid"))?;
    let key = variable("OMPI_MCA_orte_precondition_transports").or_else(|| variable("OMPI_MCA_orte_hnp_uri"));
    Some(key.map_or_else(|| number.clone(), |key| format!("{number} {key}")))
}

/// A task of a step. A batch script and the shell of salloc have variables of a task too, but no step started them.
fn slurm(variable: Lookup<'_>) -> Option<RankPlace> {
    let step = number(variable, "SLURM_STEP_ID").filter(|step| *step < FIRST_SPECIAL_STEP)?;
    let job = variable("SLURM_JOB_ID").or_else(|| variable("SLURM_JOBID"));
    let place = RankPlace {
        rank: number(variable, "SLURM_PROCID")?,
        size: number(variable, "SLURM_STEP_NUM_TASKS")?,
        local_rank: number(variable, "SLURM_LOCALID"),
        local_size: tasks_on_node(&variable("SLURM_STEP_TASKS_PER_NODE").unwrap_or_default(), number(variable, "SLURM_NODEID")),
        launcher: SLURM.to_owned(),
        // Numbers of jobs begin again with a new controller.
        job: job.map(|job| match variable("SLURM_STEP_LAUNCHER_PORT") {
            Some(port) => format!("{job}.{step} {port}"),
            None => format!("{job}.{step}"),
        }),
        bound_cpus: None,
    };
    (place.rank < place.size).then_some(place)
}

/// The tasks on a node: of `4(x2),3`, node 0 and 1 have 4, and node 2 has 3.
fn tasks_on_node(list: &str, node: Option<u32>) -> Option<u32> {
    let mut left = node?;
    for part in list.split(',') {
        let (tasks, nodes) = match part.trim().strip_suffix(')').and_then(|part| part.split_once("(x")) {
            Some((tasks, nodes)) => (tasks.parse().ok()?, nodes.parse().ok()?),
            None => (part.trim().parse().ok()?, 1),
        };
        if left < nodes {
            return Some(tasks);
        }
        left -= nodes;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(environment: &str) -> Option<RankPlace> {
        let find = |name: &str| {
            environment
                .lines()
                .find_map(|line| Some(line.trim().split_once('=')?).filter(|(key, _)| *key == name))
                .map(|(_, value)| value.to_owned())
        };
        place(&find)
    }

    fn expected(launcher: &str, [rank, size]: [u32; 2], local: [Option<u32>; 2], job: Option<&str>) -> Option<RankPlace> {
        let [local_rank, local_size] = local;
        let job = job.map(str::to_owned);
        Some(RankPlace { rank, size, local_rank, local_size, launcher: launcher.to_owned(), job, bound_cpus: None })
    }

    /// Recorded: Open MPI 4.1.4, `mpirun -n 2 --oversubscribe env`.
    const OPEN_MPI_4: &str = "
        OMPI_APP_CTX_NUM_PROCS=2
        OMPI_COMM_WORLD_LOCAL_RANK=1
        OMPI_COMM_WORLD_LOCAL_SIZE=2
        OMPI_COMM_WORLD_NODE_RANK=1
        OMPI_COMM_WORLD_RANK=1
        OMPI_COMM_WORLD_SIZE=2
        OMPI_MCA_ess_base_jobid=1182859265
        OMPI_MCA_ess_base_vpid=1
        OMPI_MCA_orte_hnp_uri=1182859264.0;tcp://192.0.2.2:41135;tcp6://[fd00::2]:57099
        OMPI_MCA_orte_precondition_transports=bda3bcfebd932e47-8a4330efd6198ede
        PMIX_NAMESPACE=1182859265
        PMIX_RANK=1";
    /// Recorded: MPICH 4.0.2, `mpirun -n 2 env`.
    const MPICH_4: &str = "
        HYDI_CONTROL_FD=7
        MPIR_CVAR_CH3_INTERFACE_HOSTNAME=vm
        MPI_LOCALNRANKS=2
        MPI_LOCALRANKID=1
        PMI_FD=8
        PMI_RANK=1
        PMI_SIZE=2";
    /// Slurm 22.05.8, as `srun -n 2 env` has it, with the numbers of a step of 3 tasks on 2 nodes.
    const SLURM_STEP: &str = "
        SLURM_JOB_ID=812
        SLURM_STEP_ID=4
        SLURM_PROCID=2
        SLURM_LOCALID=0
        SLURM_NODEID=1
        SLURM_NTASKS=3
        SLURM_STEP_LAUNCHER_PORT=35393
        SLURM_STEP_NUM_TASKS=3
        SLURM_STEP_TASKS_PER_NODE=2,1";
    /// `flux run -n 8`: the shell gives PMI too.
    const FLUX_TASK: &str = "
        FLUX_JOB_ID=ƒD2e73NP
        FLUX_JOB_SIZE=8
        FLUX_JOB_NNODES=2
        FLUX_TASK_RANK=5
        FLUX_TASK_LOCAL_ID=1
        PMI_FD=11
        PMI_RANK=5
        PMI_SIZE=8";

    /// Check the places that launchers give.
    #[test]
    fn launchers_number_their_ranks() {
        let job = "1182859265 bda3bcfebd932e47-8a4330efd6198ede";
        assert_eq!(of(OPEN_MPI_4), expected("Open MPI", [1, 2], [Some(1), Some(2)], Some(job)));
        assert_eq!(of(MPICH_4), expected("MPICH", [1, 2], [Some(1), Some(2)], None));
        assert_eq!(of(SLURM_STEP), expected("Slurm", [2, 3], [Some(0), Some(1)], Some("812.4 35393")));
        assert_eq!(of(FLUX_TASK), expected("Flux", [5, 8], [Some(1), None], Some("ƒD2e73NP")));
        let mvapich = "MV2_COMM_WORLD_RANK=3\nMV2_COMM_WORLD_SIZE=4\nMV2_COMM_WORLD_LOCAL_RANK=1\nMV2_COMM_WORLD_LOCAL_SIZE=2\nPMI_RANK=3\nPMI_SIZE=4";
        assert_eq!(of(mvapich), expected("MVAPICH", [3, 4], [Some(1), Some(2)], None));
        assert_eq!(of("PMI_RANK=0\nPMI_SIZE=4\nPMI_JOBID=x"), expected("PMI", [0, 4], [None, None], Some("x")));
        let pmix = "PMIX_RANK=2\nPMIX_NAMESPACE=slurm.pmix.812.4\nSLURM_STEP_NUM_TASKS=3";
        assert_eq!(of(pmix), expected("PMIx", [2, 3], [None, None], Some("slurm.pmix.812.4")));
    }

    /// Check that Slurm's variables name the ranks that Slurm started, and not those of an mpirun in its job.
    #[test]
    fn schedulers_come_last() {
        let with = |other: &str| of(&format!("{SLURM_STEP}\n{other}")).map(|place| (place.launcher, place.rank, place.size, place.job));
        let found = |launcher: &str, rank, size, job: Option<&str>| Some((launcher.to_owned(), rank, size, job.map(str::to_owned)));
        assert_eq!(with("PMI_RANK=2\nPMI_SIZE=3"), found("Slurm", 2, 3, Some("812.4 35393")));
        assert_eq!(with("PMIX_RANK=2\nPMIX_NAMESPACE=slurm.pmix.812.4"), found("Slurm", 2, 3, Some("812.4 35393")));
        assert_eq!(with("PMI_RANK=7\nPMI_SIZE=8\nMPI_LOCALRANKID=3"), found("MPICH", 7, 8, None));
        assert_eq!(with("OMPI_COMM_WORLD_RANK=7\nOMPI_COMM_WORLD_SIZE=8"), found("Open MPI", 7, 8, None));
    }

    /// Check that a batch script, the shell of salloc, PMIx without a size and values that make no sense are no places.
    #[test]
    fn others_are_no_ranks() {
        // Recorded: Slurm 22.05.8, sbatch -n 2.
        let batch = "SLURM_JOB_ID=812\nSLURM_PROCID=0\nSLURM_LOCALID=0\nSLURM_NODEID=0\nSLURM_NTASKS=8\nSLURM_TASKS_PER_NODE=4(x2)";
        for environment in [
            "",
            batch,
            &format!("{batch}\nSLURM_STEP_ID=4294967290\nSLURM_STEP_NUM_TASKS=1"),
            "PMIX_RANK=0\nPMIX_NAMESPACE=x",
            "PMI_RANK=4\nPMI_SIZE=4",
            "OMPI_COMM_WORLD_RANK=0",
            "OMPI_COMM_WORLD_RANK=x\nOMPI_COMM_WORLD_SIZE=2",
            "OMPI_COMM_WORLD_RANK=-1\nOMPI_COMM_WORLD_SIZE=2",
            "PMI_RANK=0\nPMI_SIZE=99999999999",
        ] {
            assert_eq!(of(environment), None, "{environment}");
        }
    }

    /// Check the tasks of nodes, and a table of malformed lists.
    #[test]
    fn tasks_of_nodes_are_read() {
        let of = |list, node| tasks_on_node(list, Some(node));
        assert_eq!([of("4(x2),3", 0), of("4(x2),3", 1), of("4(x2),3", 2), of("4(x2),3", 3)], [Some(4), Some(4), Some(3), None]);
        for list in ["", "x", "4(x", "4(x)", "(x2)", "4()", "-1"] {
            assert_eq!(of(list, 0), None, "{list}");
        }
        assert_eq!(tasks_on_node("4", None), None);
    }
}
