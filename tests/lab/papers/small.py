"""A small experiment with a claim that holds and one that does not, which counts its runs."""

from dataclasses import dataclass, field

from tidings.lab.papers.experiment import Claim, DataTable, Exhibit, Experiment, Paper


@dataclass(frozen=True)
class SmallParameters:
    size: int = 10


@dataclass
class SmallRun:
    paper: Paper = "RPS"
    number: str = "Figure 1"
    error: BaseException | None = None
    seeds: list[int] = field(default_factory=list)

    def __call__(self, parameters, seed, progress):
        self.seeds.append(seed)
        progress(0, 1, "counting")
        if self.error:
            raise self.error
        table = DataTable(("size", "us"), ((parameters.size, 0.5 * len(self.seeds)),), ("us",))
        claims = (
            Claim("Sizes are <small>.", "below 100", str(parameters.size), parameters.size < 100),
            Claim("Sizes are odd.", "odd", "even", holds=False, reason="Ten is even."),
            Claim("It is fast.", "fast", "slow", holds=False, timed=True),
        )
        return [Exhibit(self.paper, self.number, "Sizes & times", table, claims, "<svg></svg>\n")]


def small_experiment(name="small", **options):
    run = SmallRun(**options)
    run.__module__ = __name__
    return Experiment(
        name,
        run.paper,
        (run.number,),
        run,
        paper_parameters=SmallParameters(1000),
        laptop=SmallParameters(),
        quick=SmallParameters(2),
    )
