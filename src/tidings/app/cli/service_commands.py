"""The commands of the service: `serve` and `token`."""

import time
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event as Flag
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from tidings.app.cli.app import AsJson, app, print_json
from tidings.app.cli.dataclass_options import takes
from tidings.app.cli.store_commands import StoreAddress
from tidings.errors import StoreError, TidingsError, shown

if TYPE_CHECKING:
    from tidings.app.serve.config import ServeConfig

token_app: Final = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Create, list and revoke the access tokens of a service.",
)
app.add_typer(token_app, name="token")


@dataclass(frozen=True)
class ServeOptions:
    """Arguments and options of `serve`."""

    store: Annotated[
        str | None,
        typer.Argument(
            metavar="STORE", help="A store, or a config file (.toml). Default: tidings.db."
        ),
    ] = None
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None
    port: Annotated[int | None, typer.Option(min=0, max=65_535, help="The port; 0 for any.")] = None
    only: Annotated[
        Literal["service", "pipeline"] | None,
        typer.Option(help="Run only one of the two processes. Default: both."),
    ] = None
    engine: Annotated[
        Literal["local", "spark"] | None,
        typer.Option(help="The engine of the pipeline. Default: spark if it is installed."),
    ] = None
    tenant: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="With --only pipeline: one of the `spark_tenants` of the config, on Spark.",
        ),
    ] = None
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Start with demo data and a stream of films; without STORE, in a temporary store.",
        ),
    ] = False
    log: Annotated[
        Literal["text", "json"], typer.Option(help="The format of the log on standard error.")
    ] = "text"
    with_parent: Annotated[bool, typer.Option("--with-parent", hidden=True)] = False
    as_json: AsJson = False


@app.command()
@takes(ServeOptions)
def serve(options: ServeOptions) -> None:
    """Run the HTTP service and its pipeline over a store, until Ctrl-C or SIGTERM.

    A store that does not exist is created. Without tokens it listens only on this machine, and
    everyone there may do everything.

    For example:

        tidings serve --demo
        tidings serve films.db
        tidings serve service.toml --log json
        tidings serve postgresql://tidings@db/tidings --host 0.0.0.0 --only service

    docs/service.md describes the paths.
    """
    if find_spec("fastapi") is None or find_spec("uvicorn") is None:
        raise TidingsError("the service is not installed: run pip install 'tidings[serve]'")
    if options.tenant is not None and options.only != "pipeline":
        raise TidingsError(
            "--tenant needs --only pipeline; without it, `tidings serve` serves all tenants"
        )
    from tidings.app.serve.config import load_serve_config

    with TemporaryDirectory(prefix="tidings-") as folder:
        default = str(Path(folder, "demo.db")) if options.demo else "tidings.db"
        options = replace(options, store=options.store or default)
        config = load_serve_config(options.store or default)
        overrides = {name: getattr(options, name) for name in ("host", "port", "engine")}
        chosen = {name: value for name, value in overrides.items() if value is not None}
        if options.demo and config.engine is None:
            chosen.setdefault("engine", "local")
        config = replace(config, **chosen)
        if options.only == "pipeline":
            _run_pipeline(options, config)
        else:
            _run_service(options, config)


def _engine(config: "ServeConfig") -> str:
    installed = find_spec("pyspark") is not None
    if config.engine == "spark" and not installed:
        raise TidingsError(
            "Spark is not installed: run pip install 'tidings[spark]', or use --engine local"
        )
    return config.engine or ("spark" if installed else "local")


def _run_pipeline(options: ServeOptions, config: "ServeConfig") -> None:
    from tidings.app.serve.supervise import on_end_of_parent
    from tidings.app.terminal import start_logging
    from tidings.service.tenant_threads import run_pipelines, start_beside_spark
    from tidings.store.address import DEFAULT_TENANT

    start_logging(options.log)
    engine, tenant = _engine(config), options.tenant
    if tenant is not None and (engine != "spark" or tenant not in config.spark_tenants):
        raise TidingsError(
            f"tenant {shown(tenant)} is not on Spark; list it in spark_tenants of the config, and "
            "use --engine spark"
        )
    if engine == "spark":
        from tidings.app.serve.spark_pipeline import run_spark_pipeline, stop_this_process

        if options.with_parent:
            on_end_of_parent(stop_this_process)
        if tenant is None:
            on_spark = (DEFAULT_TENANT, *config.spark_tenants)
            start_beside_spark(config.store, config.settings, Flag(), on_spark)
        run_spark_pipeline(config, tenant or DEFAULT_TENANT)
        return
    from tidings.app.signals import StopActions, stop_on_signals

    with stop_on_signals(StopActions()) as stop:
        if options.with_parent:
            on_end_of_parent(stop.set)
        run_pipelines(config.store, config.settings, stop)


def _run_service(options: ServeOptions, config: "ServeConfig") -> None:
    if options.demo:
        from tidings.app.output import open_console
        from tidings.app.serve.demo import playground_at

        if not options.as_json:
            open_console().print("Filling the demo store with films; this takes a few seconds.")
        with playground_at(config.store):
            _serve(options, config)
    else:
        _serve(options, config)


def _serve(options: ServeOptions, config: "ServeConfig") -> None:
    from tidings.app.output import open_console
    from tidings.app.serve.supervise import Supervised
    from tidings.app.signals import StopActions, stop_on_signals
    from tidings.app.terminal import start_logging
    from tidings.service.server import WebServer

    server = WebServer(config.store, config.settings, config.host, config.port)
    start_logging(options.log)
    url = f"http://{config.host}:{server.port}"
    if options.as_json:
        print_json({"url": url})
    else:
        open_console().print(f"Tidings listens on {url}; its documentation is at {url}/docs")
        if options.demo:
            open_console().print(f"Open {url}/#/feed?subscriber=ada")
    with stop_on_signals(StopActions(on_request=server.stop)):
        if options.only == "service":
            server.run()
            return
        engine = _engine(config)
        arguments = ["serve", str(options.store), "--only", "pipeline", "--with-parent"]
        arguments += ["--log", options.log, "--engine", engine]
        tenants = config.spark_tenants if engine == "spark" else ()
        pipelines = [Supervised(arguments)]
        pipelines += [Supervised([*arguments, "--tenant", tenant]) for tenant in tenants]
        try:
            server.run()
        finally:
            for pipeline in pipelines:
                pipeline.stop()


@dataclass(frozen=True)
class TokenOptions:
    """Arguments and options of `token create`."""

    store: StoreAddress
    role: Annotated[Literal["admin", "publisher", "subscriber"], typer.Option()]
    subscriber: Annotated[
        str | None, typer.Option(metavar="ID", help="The subscriber of a token with that role.")
    ] = None
    tenant: Annotated[str, typer.Option(help="The tenant; each has its own store.")] = "default"
    expires: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="How long it is valid, such as 90d."),
    ] = None
    label: Annotated[str, typer.Option(help="A note on what the token is for.")] = ""
    as_json: AsJson = False


@token_app.command("create")
@takes(TokenOptions)
def create_token(options: TokenOptions) -> None:
    """Create a token and print it; it cannot be shown again.

    For example:

        tidings token create films.db --role publisher --label importer
        tidings token create films.db --role subscriber --subscriber ada --expires 90d
    """
    from tidings.model.values import SECOND_US, parse_duration_us
    from tidings.store import open_store

    now_us = int(time.time() * SECOND_US)
    until_us = None if options.expires is None else now_us + parse_duration_us(options.expires)
    with open_store(options.store) as opened:
        token = opened.tokens.create(
            options.role,
            now_us,
            tenant=options.tenant,
            subscriber=options.subscriber,
            label=options.label,
            expires_us=until_us,
        )
    if options.as_json:
        print_json({"token": token})
    else:
        typer.echo(token)


@token_app.command("list")
def list_tokens(store: StoreAddress, as_json: AsJson = False) -> None:
    """List tokens, without their secrets.

    For example:

        tidings token list films.db
    """
    from tidings.app.cli.store_commands import existing_store
    from tidings.app.output import open_console, print_tokens

    with existing_store(store) as opened:
        tokens = opened.tokens.listed()
    if as_json:
        for token in tokens:
            print_json(token.to_dict())
    else:
        print_tokens(open_console(), tokens)


@token_app.command("revoke")
def revoke_token(
    store: StoreAddress,
    token: Annotated[str, typer.Argument(metavar="ID", help="The token, or its id.")],
    as_json: AsJson = False,
) -> None:
    """Revoke a token immediately and permanently.

    For example:

        tidings token revoke films.db 4f0c2d5e8a1b3c6d
    """
    from tidings.app.cli.store_commands import existing_store
    from tidings.app.output import open_console
    from tidings.model.values import SECOND_US

    name = token.split("_")[1] if token.startswith("tidings_") else token
    with existing_store(store) as opened:
        revoked = opened.tokens.revoke(name, int(time.time() * SECOND_US))
    if not revoked:
        raise StoreError("unknown token; `tidings token list` lists those that are valid")
    if as_json:
        print_json({"revoked": name})
    else:
        open_console().print(f"token {name} revoked")
