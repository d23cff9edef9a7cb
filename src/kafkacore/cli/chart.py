"""The chart of the demo: a heat map of the mean departure delay per carrier and month."""

from __future__ import annotations

from pathlib import Path

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def draw_delays(aggregate: Path, target: Path) -> None:
    """Draw the mean departure delays, in minutes, to a PNG file.

    Parameters
    ----------
    aggregate:
        Parquet folder with the columns carrier, month, flights and mean_dep_delay.
    target:
        The PNG file.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    import pandas as pd

    table = pd.read_parquet(aggregate)
    by_size = table.groupby("carrier")["flights"].sum().sort_values(ascending=False)
    delays = table.pivot_table(index="carrier", columns="month", values="mean_dep_delay")
    delays = delays.reindex(index=by_size.index, columns=range(1, 13))
    figure, axes = plt.subplots(figsize=(9.5, 6.5), layout="constrained")
    colours = plt.get_cmap("RdYlBu_r").with_extremes(bad="0.92")
    image = axes.imshow(delays.to_numpy(dtype=float), cmap=colours, vmin=-10, vmax=40, aspect="auto")
    axes.set_xticks(range(12), MONTHS)
    axes.set_yticks(range(len(delays)), [f"{carrier}  ({by_size[carrier]:,})" for carrier in delays.index])
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    for row, carrier in enumerate(delays.index):
        for month in range(1, 13):
            delay = delays.loc[carrier, month]
            if pd.notna(delay):
                # Black text is hard to read on a colour with a luminance below one half.
                red, green, blue, _ = colours(image.norm(delay))
                dark = 0.299 * red + 0.587 * green + 0.114 * blue < 0.5
                axes.text(
                    month - 1,
                    row,
                    f"{delay:.0f}",
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if dark else "black",
                )
    axes.set_title("Mean departure delay, minutes: flights from New York City, 2013", loc="left")
    axes.set_ylabel("carrier (flights)")
    bar = figure.colorbar(image, ax=axes, shrink=0.6, extend="both")
    bar.outline.set_visible(False)
    figure.savefig(target, dpi=130)
    plt.close(figure)
