"""Valid calls of every public function, class and method, to be made with wrong types."""

import inspect
from collections.abc import Callable
from datetime import date
from typing import Any

import numpy as np
import polars as pl

import taciturn
from taciturn.data.pattern import Axis
from taciturn.data.ratings import Csr, Preparation
from tests.accounting.test_ledger import ITEMS
from tests.public_call_values import (
    BUDGET,
    NEW,
    ORDER,
    RATINGS,
    Calls,
    certificate,
    fit,
    ledger,
    names_of,
)


def functions(calls: Calls) -> None:
    small, timed = taciturn.BiasSolver(unit="value"), RATINGS.to_frame().with_columns(timestamp=1)
    release = taciturn.save(fit(), "release")
    calls.add("account", taciturn.account, ratios=[(0.1, 2)], delta=1e-5)
    given = {"model": fit(), "train": RATINGS, "test": RATINGS}
    calls.add("accuracy", taciturn.accuracy, **given, threads=1, predicts_ratings=True)
    calls.add("combine", taciturn.combine, ledgers=[ledger()])
    calls.add("coverage", taciturn.coverage, model=fit(), ratings=RATINGS, shares=[0.5])
    calls.add(
        "cross_validate",
        taciturn.cross_validate,
        ratings=RATINGS,
        solver=small,
        budget=BUDGET,
        folds=2,
        seed=1,
        threads=1,
        progress=False,
    )
    calls.add("held_out_error", taciturn.held_out_error, model=fit(), ratings=RATINGS)
    calls.add("rmse", taciturn.rmse, model=fit(), ratings=RATINGS)
    calls.add(
        "k_fold", lambda **given: list(taciturn.k_fold(**given)), ratings=RATINGS, folds=2, seed=1
    )
    timestamps = taciturn.load(timed, scale="1:5:1", timestamps=True)
    calls.add("leave_last_out", taciturn.leave_last_out, ratings=timestamps, count=1)
    for name in ("random_split", "stratified_split"):
        calls.add(name, getattr(taciturn, name), ratings=RATINGS, fraction=0.5, seed=1)
    calls.add(
        "load",
        taciturn.load,
        source=RATINGS.to_frame(),
        scale="1:5:1",
        columns={"user": "user_id"},
        timestamps=False,
        progress=lambda done, total: None,
        licence=None,
        separator=None,
        header=None,
        duplicates="error",
        missing="error",
        outside="error",
        item_id_type=None,
        max_expansion=None,
    )
    calls.add("load_release", taciturn.load_release, path=release, public_key=None)
    plan = taciturn.Plan(solvers=("bias",), epsilons=(1.0,), seeds=1)
    calls.add(
        "run_comparison",
        taciturn.run_comparison,
        ratings=RATINGS,
        plan=plan,
        source="ratings",
        folder=None,
        threads=1,
        progress=False,
        against=None,
    )
    calls.add("save", taciturn.save, fit=fit(), path=NEW, delta=1e-5, about=None)
    calls.add(
        "train",
        taciturn.train,
        ratings=RATINGS,
        solver=small,
        budget=BUDGET,
        output=NEW,
        holdout=None,
        seed=0,
        threads=1,
        resume=False,
        pattern_is_public=False,
        progress=False,
    )
    calls.add(
        "verify_release",
        taciturn.verify_release,
        path=release,
        allowed=frozenset({taciturn.Status.PROVEN}),
        public_key=None,
        max_epsilon=1.0,
        max_delta=1e-5,
        population=10,
        not_before=date(2026, 1, 1),
        config=None,
    )
    users, items = RATINGS.user_ids, RATINGS.item_ids
    calls.add("with_id_lists", taciturn.with_id_lists, ratings=RATINGS, users=users, items=items)
    table = pl.DataFrame({"item_id": items, "year": range(len(items))})
    calls.add("load_item_features", taciturn.load_item_features, source=table, columns=["year"])
    features = taciturn.load_item_features(table)
    calls.add("with_item_features", taciturn.with_item_features, ratings=RATINGS, features=features)
    calls.add(
        "ItemFeatures",
        taciturn.ItemFeatures,
        **{name: getattr(features, name) for name in names_of(taciturn.ItemFeatures)},
    )
    calls.add("ItemFeatures.aligned", features.aligned, item_ids=items)
    calls.add("ItemFeatures.fingerprint", features.fingerprint)
    _public_ratings(calls)


def _public_ratings(calls: Calls) -> None:
    reading = {"separator": None, "header": None, "duplicates": "error", "missing": "error"}
    calls.add(
        "load_public_ratings",
        taciturn.load_public_ratings,
        source=RATINGS.to_frame(),
        scale="1:5:1",
        columns=None,
        progress=lambda done, total: None,
        **reading,
    )
    public = taciturn.load_public_ratings(RATINGS.to_frame(), scale="1:5:1")
    calls.add("with_public_ratings", taciturn.with_public_ratings, ratings=RATINGS, public=public)
    known = {name: getattr(public, name) for name in names_of(taciturn.PublicRatings)}
    calls.add("PublicRatings", taciturn.PublicRatings, **known)
    calls.add("PublicRatings.fingerprint", public.fingerprint)


def accounting(calls: Calls) -> None:
    ledger().save("ledger.json")
    certificate().save("certificate.json")
    numbers = dict.fromkeys(inspect.signature(taciturn.Accounts).parameters, 1.0)
    calls.add("Accounts", taciturn.Accounts, **numbers)
    calls.add("Budget", taciturn.Budget, epsilon=2.0, delta=1e-5, mu=BUDGET.mu)
    calls.add("Budget.from_epsilon", taciturn.Budget.from_epsilon, epsilon=1.0, delta=1e-5)
    calls.add("Budget.from_mu", taciturn.Budget.from_mu, mu=1.0, delta=1e-5)
    known = {name: getattr(certificate(), name) for name in names_of(taciturn.Certificate)}
    calls.add("Certificate", taciturn.Certificate, **known)
    made = taciturn.Certificate
    calls.add("Certificate.from_ledger", made.from_ledger, ledger=ledger(), delta=1e-5)
    calls.add("Certificate.from_dict", made.from_dict, document=certificate().to_dict())
    calls.add("Certificate.load", made.load, path="certificate.json")
    calls.add("Certificate.save", certificate().save, path=NEW)
    for name in ("facts", "to_dict", "to_text"):
        calls.add(f"Certificate.{name}", getattr(certificate(), name))
    calls.add("ExactRelease", taciturn.ExactRelease, purpose="mean", unit="value")
    calls.add("PatternRelease", taciturn.PatternRelease, purpose="counts", unit="value")
    calls.add("FoldInServing", taciturn.FoldInServing, purpose="profiles", unit="value")
    event = {name: getattr(ITEMS, name) for name in names_of(taciturn.GaussianRelease)}
    calls.add("GaussianRelease", taciturn.GaussianRelease, **event)
    calls.add("GaussianRelease.growth", ITEMS.growth, group=1)
    calls.add("GaussianRelease.sampler_charge", ITEMS.sampler_charge, group=1, steps=1)
    films = {"kind": "item-features", "name": "films.csv", "sha256": "0" * 64, "columns": 3}
    calls.add("PublicInput", taciturn.PublicInput, **films, ratings=None)
    calls.add("PublicInput.from_dict", taciturn.PublicInput.from_dict, document=films)
    public: Any = taciturn.PublicInput.from_dict(films)
    calls.add("PublicInput.to_dict", public.to_dict)
    calls.add("Ledger", taciturn.Ledger, events=[ITEMS], run=None, public_inputs=[public])
    calls.add("Ledger.append", taciturn.Ledger([ITEMS]).append, event=ITEMS)
    calls.add("Ledger.from_dict", taciturn.Ledger.from_dict, document=ledger().to_dict())
    calls.add("Ledger.load", taciturn.Ledger.load, path="ledger.json")
    calls.add("Ledger.save", ledger().save, path=NEW)
    calls.add("Ledger.spend", ledger().spend, group=1, steps=1)
    for name in ("ratios", "to_dict"):
        calls.add(f"Ledger.{name}", getattr(ledger(), name))


def solvers(calls: Calls) -> None:
    for name in taciturn.__all__:
        kind = getattr(taciturn, name)
        if not (inspect.isclass(kind) and issubclass(kind, taciturn.Solver)):
            continue
        solver: taciturn.Solver = taciturn.BiasSolver(unit="value")
        if kind is not taciturn.Solver:
            given = {each: getattr(kind(), each) for each in names_of(kind)}
            calls.add(name, kind, **given)
            solver = kind(**{key: 1 for key in ("factors", "iterations") if key in given})
        budget = BUDGET if solver.is_private else None
        calls.add(
            f"{name}.fit", solver.fit, ratings=RATINGS, budget=budget, session=taciturn.Session()
        )
        for method in ("plan", "algorithm_for"):
            calls.add(f"{name}.{method}", getattr(solver, method), ratings=RATINGS, budget=budget)
        calls.add(f"{name}.to_dict", solver.to_dict)
        calls.add(f"{name}.from_dict", kind.from_dict, document=solver.to_dict())
    calls.add(
        "Plan",
        taciturn.Plan,
        solvers=("bias",),
        units=("value",),
        epsilons=(1.0,),
        delta=1e-5,
        seeds=1,
        first_seed=0,
        holdout=0.5,
        serve=None,
        has_public=False,
        same_users=False,
    )
    plan = taciturn.Plan(solvers=("als",))
    calls.add("Plan.make_solver", plan.make_solver, name="als", unit="rating")
    calls.add("Plan.check_item_features", plan.check_item_features)
    calls.add("Plan.check_public_ratings", plan.check_public_ratings)
    calls.add("InsecureTestNoise", taciturn.InsecureTestNoise, seed=1)
    noise = taciturn.InsecureTestNoise(1)
    calls.add("InsecureTestNoise.claim", noise.claim)
    calls.add("InsecureTestNoise.erase", noise.erase, reason="done")
    calls.add(
        "Session",
        taciturn.Session,
        seed=0,
        user_seed=None,
        threads=None,
        noise=None,
        folder=None,
        progress=False,
    )


def models(calls: Calls) -> None:
    model, rows = fit().model, np.zeros(1, dtype=np.int64)
    user, item = int(RATINGS.user_ids[0]), int(RATINGS.item_ids[0])
    calls.add(
        "FactorModel",
        taciturn.FactorModel,
        **{n: getattr(model, n) for n in names_of(type(model))},
    )
    for name in ("predict", "rows_of_pairs"):
        calls.add(f"FactorModel.{name}", getattr(model, name), users=[user], items=[item])
    for name in (
        "predict_rows",
        "score_rows",
        "standard_deviation_rows",
        "star_probability_rows",
    ):
        calls.add(f"FactorModel.{name}", getattr(model, name), users=rows, items=rows)
    calls.add("FactorModel.offsets_rows", model.offsets_rows, users=rows)
    calls.add("FactorModel.rows_of_users", model.rows_of_users, ids=[user])
    calls.add("FactorModel.rows_of_items", model.rows_of_items, ids=[item])
    calls.add("FactorModel.fold_in", model.fold_in, ratings={item: 3.0}, regularization=1.0)
    factors = np.zeros(model.factor_count)
    calls.add(
        "FactorModel.with_user",
        model.with_user,
        bias=0.0,
        factors=factors,
        variances=np.ones(1 + model.factor_count),
        interest=None,
    )
    calls.add("FactorModel.without_interest", model.without_interest)
    profiles = model.item_profiles
    calls.add(
        "Profiles",
        taciturn.Profiles,
        **{n: getattr(profiles, n) for n in names_of(type(profiles))},
    )
    table = np.zeros((len(profiles), 2))
    calls.add("Profiles.from_rows", taciturn.Profiles.from_rows, ids=profiles.ids, rows=table)
    calls.add("Profiles.take", profiles.take, rows=rows)
    calls.add(
        "Profiles.with_variances",
        profiles.with_variances,
        rows=np.ones((len(profiles), 1 + model.factor_count)),
    )
    recommender = taciturn.Recommender(fit())
    calls.add(
        "Recommender", taciturn.Recommender, release=fit(), items=None, threads=1, titles=None
    )
    calls.add("Recommender.title", recommender.title, item=item)
    pairs = RATINGS.to_frame()
    for name, server in (("Recommender", recommender), ("Fit", fit())):
        calls.add(f"{name}.predict", server.predict, users=user, items=item)
        recommend = server.recommend
        calls.add(f"{name}.recommend", recommend, users=user, count=2, exclude=pairs, **ORDER)
    pair: dict[str, Any] = {"users": user, "items": item}
    calls.add("Recommender.standard_deviations", recommender.standard_deviations, **pair)
    calls.add("Recommender.distribution", recommender.distribution, user=user, item=item)
    folded: dict[str, Any] = {"folded": recommender.fold_in({item: 3.0}), "item": item}
    calls.add("Recommender.distribution_profile", recommender.distribution_profile, **folded)
    calls.add("Recommender.fold_in", recommender.fold_in, ratings={item: 3.0})
    calls.add("Recommender.similar", recommender.similar, item=item, count=2, by="rating")
    mine: dict[str, Any] = {"bias": 0.0, "factors": factors}
    calls.add("Recommender.predict_profile", recommender.predict_profile, **mine, item=item)
    more = {"interest": None, "exclude": [item], "ratings": {item: 3.0}} | ORDER
    profile = recommender.recommend_profile
    calls.add("Recommender.recommend_profile", profile, **mine, count=2, **more)


def data(calls: Calls) -> None:
    calls.add("Scale", taciturn.Scale, low=1.0, high=5.0, step=1.0)
    calls.add("Scale.parse", taciturn.Scale.parse, text="1:5")
    calls.add("Scale.encode", RATINGS.scale.encode, values=np.ones(2))
    calls.add("Scale.decode", RATINGS.scale.decode, codes=np.zeros(2, dtype=np.uint8))
    table = RATINGS.by_user
    calls.add(
        "Ratings",
        taciturn.Ratings,
        user_ids=RATINGS.user_ids,
        item_ids=RATINGS.item_ids,
        scale=RATINGS.scale,
        by_user=Csr(table.starts, table.columns, table.codes),
        timestamps=None,
        preparation=Preparation(),
        item_features=None,
        public_ratings=None,
    )
    about = {"name": "films", "owner": "us", "purpose": "tests", "contact": "a@b.example"}
    calls.add("About", taciturn.About, **about)
    calls.add("About.given", taciturn.About(**about).given)
    calls.add("About.from_dict", taciturn.About.from_dict, document=about)
    calls.add("Ratings.along", RATINGS.along, axis=Axis.ITEMS)
    calls.add("Ratings.pairs_of", RATINGS.pairs_of, users=RATINGS.user_ids)
    calls.add("Ratings.place", RATINGS.place, user=0, item=int(table.columns[0]))
    place = np.zeros(1, dtype=np.int64)
    calls.add("Ratings.replaced", RATINGS.replaced, places=place, values=np.ones(1))
    calls.add("Ratings.select", RATINGS.select, keep=np.ones(len(RATINGS), dtype=np.bool_))
    for name in ("digest", "pairs_digest", "rows", "to_frame", "values"):
        calls.add(f"Ratings.{name}", getattr(RATINGS, name))
    calls.add(
        "Outputs",
        taciturn.Outputs,
        release="new",
        users_out=None,
        pseudonyms=None,
        pseudonyms_in=None,
        private_items=None,
        sign=None,
        latest=None,
        configuration=None,
        about=taciturn.About(),
    )


def results(calls: Calls) -> None:
    """Classes that a caller gets from a function and does not build."""
    accuracy = taciturn.accuracy(fit(), RATINGS, RATINGS)
    found = taciturn.CrossValidation(folds=(accuracy, accuracy))
    calls.add(
        "Accuracy",
        taciturn.Accuracy,
        **{n: getattr(accuracy, n) for n in names_of(type(accuracy))},
    )
    calls.add("CrossValidation", taciturn.CrossValidation, folds=found.folds)
    for name in ("mean", "standard_error"):
        calls.add(f"CrossValidation.{name}", getattr(found, name), metric="rmse")
    calls.add("CrossValidation.to_frame", found.to_frame)
    plan = taciturn.Plan(solvers=("non-private-bias",), seeds=1)
    compared = taciturn.run_comparison(RATINGS, plan)
    calls.add(
        "Comparison",
        taciturn.Comparison,
        **{n: getattr(compared, n) for n in names_of(type(compared))},
    )
    for name in ("summaries", "pairing", "to_dict"):
        calls.add(f"Comparison.{name}", getattr(compared, name))
    calls.add("Comparison.against", compared.against, earlier=compared)
    calls.add("Fit", taciturn.Fit, **{n: getattr(fit(), n) for n in names_of(taciturn.Fit)})
    error = taciturn.held_out_error(fit(), RATINGS)
    calls.add(
        "HeldOutError",
        taciturn.HeldOutError,
        **{n: getattr(error, n) for n in names_of(type(error))},
    )
    calls.add("Release", taciturn.Release, **dict.fromkeys(names_of(taciturn.Release)))
    calls.add("Trained", taciturn.Trained, **dict.fromkeys(names_of(taciturn.Trained)))


GROUPS: list[Callable[[Calls], None]] = [functions, accounting, solvers, models, data, results]
