//! How often predictions are right beside how sure they are, and how many there are.

use super::axis::{Ruler, write};
use super::frame::{self, Area, Entry, Sign, VALUES};
use super::lines::within;
use super::picture::{Anchor, DOTS, Picture, Role};
use crate::report::{Axis, Calibration, Number};
use crate::ui;

pub fn draw(picture: &mut Picture, title: &str, calibration: &Calibration) {
    let narrow = frame::is_narrow(picture);
    let axis = |label: &str| Axis::percent(label).within(0.0, 1.0);
    let (x, y) = (axis("probability of the predicted class"), axis("share that is right"));
    let entries = [
        Entry { name: "predictions".into(), role: Role::Series(0), sign: Sign::Line(0) },
        Entry { name: "perfectly calibrated".into(), role: Role::Text, sign: Sign::Dotted },
    ];
    let top = frame::head(picture, title, &entries);
    let (horizontal, upright) = (Ruler::new(&x, [].into_iter(), 5), Ruler::new(&y, [].into_iter(), 5));
    let left = frame::left_margin(&upright);
    let side = (picture.width - left - 20.0).min(if narrow { 260.0 } else { 330.0 });
    let area = Area { left, top, right: left + side, bottom: top + side };
    picture.width = picture.width.min((area.right + 24.0).max(330.0));
    let (across, up) = (horizontal.between(area.left, area.right), upright.between(area.bottom, area.top));
    frame::draw_y(picture, area, &up, &y.label);
    picture.line(vec![(area.left, area.bottom), (area.right, area.top)], Role::Text, 1.8, DOTS);
    // Below: how many predictions there are of each kind.
    let strip = Area { top: area.bottom + 14.0, bottom: area.bottom + 54.0, ..area };
    let most = calibration.bins.iter().map(|bin| bin.count).max().unwrap_or(1).max(1) as f32;
    for bin in &calibration.bins {
        let height = (strip.bottom - strip.top) * bin.count as f32 / most;
        let (from, to) = (across.at(bin.from) + 1.0, across.at(bin.to) - 1.0);
        picture.rectangle((from, strip.bottom - height), (to, strip.bottom), Role::Series(0), 0.45);
    }
    let middle = 0.5 * (strip.top + strip.bottom) + 4.0;
    picture.text((area.left - 7.0, middle), VALUES, Anchor::End, Role::Muted, "how many");
    picture.line(vec![(area.left, area.bottom), (area.right, area.bottom)], Role::Text, 1.2, &[]);
    picture.height = frame::draw_x(picture, strip, &across, &x.label);
    let at = |value: f64, height: f64| (across.at(value), up.at(height.clamp(0.0, 1.0)));
    let places: Vec<_> = calibration.bins.iter().map(|bin| at(bin.confidence, bin.accuracy)).collect();
    for (bin, place) in calibration.bins.iter().zip(&places) {
        let ends = (at(0.0, bin.interval.0).1, at(0.0, bin.interval.1).1);
        frame::whisker(picture, place.0, ends, Role::Series(0));
    }
    picture.line(places.clone(), Role::Series(0), 2.2, &[]);
    for (bin, place) in calibration.bins.iter().zip(places) {
        picture.mark(place, 0, 4.2, Role::Series(0));
        let percent = |share| write(share, Number::Percent);
        let text = format!(
            "{} predictions with probability {} to {}, mean {}: {} right{}",
            ui::count(bin.count),
            percent(bin.from),
            percent(bin.to),
            percent(bin.confidence),
            percent(bin.accuracy),
            within(bin.interval, &y)
        );
        picture.tooltip(place, 0, text);
    }
}
