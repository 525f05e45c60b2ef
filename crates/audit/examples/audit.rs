//! The guarantee under attack: canaries that coins put into the data, and what the vault's answers tell of them.

use progap::settings::PublicFacts;
use progap::{Edge, Settings};
use progap_audit::{Auditor, evaluate};

fn main() -> progap::Result<()> {
    let data = progap::load("demo")?;
    // The canaries are of the unit that the data decides, and must not decide it themselves.
    let draft = Edge::epsilon(1.0).settings()?;
    let asked = draft.resolve(&PublicFacts::of(&data, &draft))?.into_settings();
    let settings = Settings { unit_from_data: false, ..asked };

    let auditor = Auditor { dataset: &data, settings: &settings, canaries: Some(20_000) };
    for finding in evaluate(&auditor.mechanism()?, 0.9999)? {
        let claimed = finding.claimed.map_or("nothing".into(), |epsilon| format!("at most {epsilon:.2}"));
        println!("{}: claimed {claimed}, measured at least {:.2}", finding.what, finding.measured);
        assert!(!finding.refuted, "the guarantee does not hold");
    }
    Ok(())
}
