//! The page to try it: what each release promises, and a form for every route of the description. It loads nothing from
//! elsewhere.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;

/// Only what this server serves may be loaded, run or asked.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(crate) async fn html() -> Response {
    served(include_str!("page/page.html"), "text/html; charset=utf-8")
}

pub(crate) async fn script() -> Response {
    served(include_str!("page/page.js"), "text/javascript; charset=utf-8")
}

pub(crate) async fn style() -> Response {
    served(include_str!("page/page.css"), "text/css; charset=utf-8")
}

fn served(content: &'static str, kind: &'static str) -> Response {
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}
