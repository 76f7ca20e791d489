"""`riskbayes explore`: a page on which calibration is stepped through, in a browser of this machine."""

from __future__ import annotations

from pathlib import Path

import click

from riskbayes.commands._paths import NEW_FILE, refuse_folder


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the loopback; by default a free one.",
)
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser.")
@click.option("--out", type=NEW_FILE, help="Write the page to this file instead; it needs no server.")
def explore(port: int, open_browser: bool, out: Path | None) -> None:
    """Place points and step through calibration in a browser.

    The page is served to this machine only, until Ctrl-C. It computes in the browser and asks no network.
    """
    from riskbayes.explore.page import explore_page

    if out is not None:
        from riskbayes.new_files import write_files

        refuse_folder(out)
        write_files({out: explore_page()})
        click.echo(f"The page: {out}")
        return
    from riskbayes.explore.server import PageServer  # imports http

    try:
        server = PageServer(explore_page(), port)
    except OSError as error:
        raise click.ClickException(
            f"Cannot serve on port {port}: {error.strerror}. Choose another."
        ) from None
    click.echo(f"The page: {server.address} (Ctrl-C ends it)")
    if open_browser:
        click.launch(server.address)
    with server:
        server.serve_forever()
