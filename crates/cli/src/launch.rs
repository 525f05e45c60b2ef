//! Whether several ranks were started, and by whom.

/// How many ranks a launcher says that it started; nothing where none did.
pub fn ranks() -> Option<usize> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
    let pmi = number("OMPI_COMM_WORLD_SIZE").or_else(|| number("PMI_SIZE")).or_else(|| {
        // PMIx says which rank this is; how many there are, SLURM knows.
        number("PMIX_RANK").and_then(|_| number("SLURM_NTASKS"))
    });
    // `srun` without a way for MPI to find the other ranks.
    pmi.or_else(|| number("SLURM_STEP_NUM_TASKS").filter(|&tasks| tasks > 1))
}
