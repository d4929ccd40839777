//! Program of `cargo xtask bench`, which builds it and the measured programs.
#![forbid(unsafe_code)]

use bench::options::BenchmarkOptions;
use clap::Parser;

fn main() -> anyhow::Result<()> {
    let options = BenchmarkOptions::parse();
    let report = bench::run(&options)?;
    println!("{report}");
    println!("\nsummary.json and the charts are in {}", options.out.display());
    Ok(())
}
