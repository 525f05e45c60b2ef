//! Settings by name, as a form, a file or another language would offer them.

use progap::Settings;
use progap::settings::Request;

fn main() -> progap::Result<()> {
    for setting in Settings::declarations().iter().filter(|setting| setting.about.offered).take(5) {
        println!("{}: {} ({})", setting.name, setting.help, setting.expected());
    }

    let asked = Request::default().with("level", "edge").with("epsilon", 2.0).with("depth", 1);
    let model = progap::train(&progap::load("demo")?, asked).in_memory()?;
    println!("{}", model.guarantee());

    // A setting that is asked for in vain is refused, in words that name it.
    let refused = Request::default().with("level", "edge").with("clip", 0.5).settings();
    println!("{}", refused.expect_err("gradients are clipped at node level only"));
    Ok(())
}
