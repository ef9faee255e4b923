"""Fits estimators of scikit-learn, LightGBM and XGBoost on small data and converts them with skl2onnx and onnxmltools.

python estimators.py [name...]    # only these

Writes to standard output, numbers little endian, for each estimator:
u32 length of the name, the name, u32 length of the reason why there is no model, the reason (0: there is one), u32 length of the model, the
model, u32 number of inputs, inputs as reference.py reads them. First the versions of the packages, as the reason of an estimator without a name.
"""
import os
import struct
import sys
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore")

import numpy
import onnx
import sklearn
import skl2onnx
from skl2onnx.common.data_types import FloatTensorType, Int64TensorType, StringTensorType

make_attribute = onnx.helper.make_attribute


def make_plain_attribute(name, value, *more, **named):
    """onnx refuses arrays and lists of bool as attributes, which some converters make."""
    if isinstance(value, numpy.ndarray):
        value = value.tolist()
    if isinstance(value, list):
        value = [int(v) if isinstance(v, (bool, numpy.bool_)) else v for v in value]
    return make_attribute(name, value, *more, **named)


onnx.helper.make_attribute = make_plain_attribute
OPSET = {"": 18, "ai.onnx.ml": 3}
KINDS = {"float32": 1, "int64": 7, "object": 8}


def text(s):
    data = s.encode()
    return struct.pack("<I", len(data)) + data


def pack(value):
    if value.dtype.name != "object":
        return value.tobytes()
    return b"".join(text(s) for s in value.reshape(-1).tolist())


def write(name, reason="", model=b"", inputs=()):
    out = text(name) + text(reason) + struct.pack("<I", len(model)) + model + struct.pack("<I", len(inputs))
    for key, value in inputs:
        data = pack(value)
        out += text(key) + struct.pack("<II", KINDS[value.dtype.name], value.ndim) + struct.pack("<%dQ" % (value.ndim + 1), *value.shape, len(data)) + data
    sys.stdout.buffer.write(out)
    sys.stdout.buffer.flush()


random = numpy.random.RandomState(7)
ROWS, FEATURES = 120, 5
X = random.randn(ROWS, FEATURES).astype(numpy.float32)
score = X[:, 0] * 2 - X[:, 1] + 0.5 * X[:, 2] * X[:, 3]
TARGETS = {
    "number": score + 0.1 * random.randn(ROWS),
    "positive": numpy.exp(0.3 * score),
    "numbers": numpy.stack([score, X[:, 1] - X[:, 4]], axis=1),
    "two": (score > 0).astype(numpy.int64),
    "three": numpy.digitize(score, [-1, 1]).astype(numpy.int64),
    "words": numpy.array(["low", "middle", "high"], dtype=object)[numpy.digitize(score, [-1, 1])],
    "labels": numpy.stack([score > 0, X[:, 1] > 0, X[:, 4] > 0.5], axis=1).astype(numpy.int64),
    "none": None,
}
TEST = numpy.concatenate([X[:20], random.randn(30, FEATURES).astype(numpy.float32)])
MISSING = X.copy()
MISSING[random.rand(*X.shape) < 0.1] = numpy.nan
TEST_MISSING = TEST.copy()
TEST_MISSING[random.rand(*TEST.shape) < 0.2] = numpy.nan
COUNTS = random.poisson(2, X.shape).astype(numpy.float32)
WHOLE = random.randint(0, 4, (ROWS, 3)).astype(numpy.int64)
WORDS = numpy.array(["red", "green", "blue"], dtype=object)[random.randint(0, 3, (ROWS, 2))]
PHRASES = numpy.array(["the quick brown fox", "the lazy dog", "a dog and a fox jump", "quick quick dog"] * 5, dtype=object)


class Case:
    """An estimator with its data: those of training, and those of the comparison."""

    def __init__(self, name, make, target="number", train=X, test=TEST, options=None):
        self.name, self.make, self.target, self.train, self.test, self.options = name, make, target, train, test, options

    def initial(self):
        width = self.test.shape[1] if self.test.ndim > 1 else None
        if self.test.dtype == object:
            return [("input", StringTensorType([None, width] if width else [None, 1]))]
        kind = Int64TensorType if self.test.dtype == numpy.int64 else FloatTensorType
        return [("input", kind([None, width]))]

    def convert(self, model):
        choices = [self.options or {}]
        if self.options is None and (hasattr(model, "classes_") or hasattr(model, "estimators_")):
            choices = [{"zipmap": False}, {}]
        for options in choices:
            try:
                return skl2onnx.convert_sklearn(model, initial_types=self.initial(), options={id(model): options} if options else None, target_opset=OPSET)
            except NameError as e:  # no such option
                reason = e
        raise reason

    def run(self):
        model = self.make()
        y = TARGETS[self.target]
        if y is None:
            model.fit(self.train)
        else:
            model.fit(self.train, y)
        onx = self.convert(model)
        test = self.test if self.test.ndim > 1 else self.test.reshape(-1, 1)
        set_locale(onx.graph)
        name = onx.graph.input[0].name
        write(self.name, "", onx.SerializeToString(), [(name, numpy.ascontiguousarray(test))])


def set_locale(graph):
    """Gives every StringNormalizer a locale that there is where ONNX Runtime runs."""
    for node in graph.node:
        if node.op_type == "StringNormalizer" and all(a.name != "locale" for a in node.attribute):
            node.attribute.append(make_attribute("locale", "C.UTF-8"))


def cases():
    """All cases. What is here by hand has parameters or data that its default does not have."""
    yield from supported()
    yield from variants()
    yield from texts()
    yield from boosted()


# Estimators that need parameters.
def parameters():
    from sklearn import linear_model, preprocessing, tree

    logistic, linear = linear_model.LogisticRegression, linear_model.LinearRegression
    small = dict(n_estimators=10, random_state=0)
    return {
        "AdaBoostClassifier": dict(**small), "AdaBoostRegressor": dict(**small), "BaggingClassifier": dict(**small), "BaggingRegressor": dict(**small),
        "ExtraTreesClassifier": dict(**small), "ExtraTreesRegressor": dict(**small), "GradientBoostingClassifier": dict(**small),
        "GradientBoostingRegressor": dict(**small), "RandomForestClassifier": dict(**small), "RandomForestRegressor": dict(**small),
        "IsolationForest": dict(**small), "HistGradientBoostingClassifier": dict(max_iter=10), "HistGradientBoostingRegressor": dict(max_iter=10),
        "RandomTreesEmbedding": dict(n_estimators=5, random_state=0), "CalibratedClassifierCV": dict(cv=2), "ClassifierChain": dict(estimator=logistic()),
        "ColumnTransformer": dict(transformers=[("a", preprocessing.StandardScaler(), [0, 1]), ("b", "passthrough", [2, 3, 4])]),
        "FeatureUnion": dict(transformer_list=[("a", preprocessing.StandardScaler()), ("b", preprocessing.MinMaxScaler())]),
        "Pipeline": dict(steps=[("a", preprocessing.StandardScaler()), ("b", logistic())]), "GridSearchCV": dict(estimator=logistic(), param_grid={"C": [1, 2]}, cv=2),
        "RandomizedSearchCV": dict(estimator=logistic(), param_distributions={"C": [1, 2]}, n_iter=2, cv=2),
        "MultiOutputClassifier": dict(estimator=logistic()), "MultiOutputRegressor": dict(estimator=linear()), "OneVsOneClassifier": dict(estimator=logistic()),
        "OneVsRestClassifier": dict(estimator=logistic()), "OutputCodeClassifier": dict(estimator=logistic(), random_state=0),
        "RANSACRegressor": dict(random_state=0), "RFE": dict(estimator=linear(), n_features_to_select=3), "RFECV": dict(estimator=linear(), cv=2),
        "RegressorChain": dict(estimator=linear()), "SelectFromModel": dict(estimator=linear()), "SelectKBest": dict(k=3),
        "StackingClassifier": dict(estimators=[("a", logistic()), ("b", tree.DecisionTreeClassifier(random_state=0))], cv=2),
        "StackingRegressor": dict(estimators=[("a", linear()), ("b", tree.DecisionTreeRegressor(random_state=0))], cv=2),
        "VotingClassifier": dict(estimators=[("a", logistic()), ("b", tree.DecisionTreeClassifier(random_state=0))], voting="soft", flatten_transform=False),
        "VotingRegressor": dict(estimators=[("a", linear()), ("b", tree.DecisionTreeRegressor(random_state=0))]),
        "TransformedTargetRegressor": dict(regressor=linear()), "SVC": dict(probability=True, random_state=0), "NuSVC": dict(probability=True, random_state=0, nu=0.2),
        "GaussianMixture": dict(n_components=3, random_state=0), "BayesianGaussianMixture": dict(n_components=2, random_state=0), "KMeans": dict(n_clusters=3, random_state=0, n_init=1),
        "MiniBatchKMeans": dict(n_clusters=3, random_state=0, n_init=1), "MLPClassifier": dict(hidden_layer_sizes=(8,), max_iter=50, random_state=0),
        "MLPRegressor": dict(hidden_layer_sizes=(8,), max_iter=50, random_state=0), "TruncatedSVD": dict(n_components=2, random_state=0), "PCA": dict(n_components=2),
        "IncrementalPCA": dict(n_components=2), "KernelPCA": dict(n_components=2, kernel="rbf"), "FastICA": dict(n_components=2, random_state=0),
        "GaussianRandomProjection": dict(n_components=2, random_state=0), "SparseRandomProjection": dict(n_components=2, random_state=0),
        "KBinsDiscretizer": dict(n_bins=3, encode="ordinal"), "GaussianProcessRegressor": dict(alpha=1.0), "QuantileRegressor": dict(solver="highs"),
        "TunedThresholdClassifierCV": dict(estimator=logistic(), cv=2), "SGDClassifier": dict(loss="log_loss", random_state=0),
        "QuantileTransformer": dict(n_quantiles=10), "RadiusNeighborsClassifier": dict(radius=5.0), "RadiusNeighborsRegressor": dict(radius=5.0),
        "Perceptron": dict(random_state=0), "MultiTaskLassoCV": dict(cv=2), "MultiTaskElasticNetCV": dict(cv=2),
        "PLSRegression": dict(n_components=2), "OneClassSVM": dict(nu=0.2), "TargetEncoder": dict(cv=2), "LocalOutlierFactor": dict(novelty=True),
        "GenericUnivariateSelect": dict(mode="k_best", param=3), "SelectPercentile": dict(percentile=50), "NearestNeighbors": dict(radius=None),
    }


# Estimators of classes whose names do not say so.
CLASSIFIERS = """LinearSVC SVC NuSVC LogisticRegression LogisticRegressionCV Perceptron LinearDiscriminantAnalysis QuadraticDiscriminantAnalysis
CalibratedClassifierCV NearestCentroid Pipeline GridSearchCV RandomizedSearchCV GenericUnivariateSelect SelectFdr SelectFpr SelectFwe SelectKBest
SelectPercentile NeighborhoodComponentsAnalysis""".split()


def supported():
    """One case for each class of scikit-learn that skl2onnx has a converter for."""
    from skl2onnx._supported_operators import sklearn_operator_name_map

    made = parameters()
    for cls in sorted(sklearn_operator_name_map, key=lambda c: c.__name__):
        name = cls.__name__
        if not cls.__module__.startswith("sklearn."):
            continue
        target, train, test = "number", X, TEST
        if "Classifier" in name or name in CLASSIFIERS or cls.__module__.startswith("sklearn.naive_bayes"):
            target = "three"
        if cls.__module__.startswith("sklearn.naive_bayes") and name != "GaussianNB" or name in ("LatentDirichletAllocation", "NMF"):
            train, test = COUNTS, COUNTS[:40]
        if name == "CategoricalNB":
            train, test = WHOLE.astype(numpy.float32), WHOLE[:30].astype(numpy.float32)
        if name in ("GammaRegressor", "PoissonRegressor", "TweedieRegressor"):
            target = "positive"
        if name.startswith(("MultiTask", "RegressorChain", "MultiOutputRegressor")):
            target = "numbers"
        if name.startswith(("MultiOutputClassifier", "ClassifierChain")):
            target = "labels"
        if name in ("GaussianProcessClassifier", "TunedThresholdClassifierCV"):
            target = "two"
        if name in ("OneHotEncoder", "OrdinalEncoder"):
            train, test = WORDS, WORDS[:20]
        if name == "KernelCenterer":
            train, test = X @ X.T, TEST @ X.T
        if name == "TargetEncoder":
            train, test = WHOLE, WHOLE[:30]
        if name in ("KNNImputer", "SimpleImputer", "MissingIndicator"):
            train, test = MISSING, TEST_MISSING
        if name in ("CountVectorizer", "TfidfVectorizer", "HashingVectorizer", "FeatureHasher"):
            train, test, target = PHRASES, PHRASES[:8], "none"
        if name == "TfidfTransformer":
            train, test = COUNTS, COUNTS[:20]
        if name in ("LabelEncoder", "LabelBinarizer"):
            train, test, target = TARGETS["three"], TARGETS["three"][:20], "none"
        if name == "MultiLabelBinarizer":
            train, test, target = WHOLE.tolist(), WHOLE[:5], "none"
        yield Case(name, lambda cls=cls, name=name: cls(**made.get(name, {})), target, train, test)


def variants():
    """Estimators with other parameters, labels and missing values."""
    from sklearn import ensemble, impute, linear_model, neighbors, pipeline, preprocessing, svm, tree

    small = dict(n_estimators=10, random_state=0)
    for target in ("two", "words"):
        yield Case("DecisionTreeClassifier, " + target, lambda: tree.DecisionTreeClassifier(random_state=0), target)
        yield Case("RandomForestClassifier, " + target, lambda: ensemble.RandomForestClassifier(**small), target)
        yield Case("ExtraTreesClassifier, " + target, lambda: ensemble.ExtraTreesClassifier(**small), target)
        yield Case("GradientBoostingClassifier, " + target, lambda: ensemble.GradientBoostingClassifier(**small), target)
        yield Case("HistGradientBoostingClassifier, " + target, lambda: ensemble.HistGradientBoostingClassifier(max_iter=10), target)
        yield Case("LogisticRegression, " + target, lambda: linear_model.LogisticRegression(), target)
        yield Case("SVC, " + target, lambda: svm.SVC(probability=True, random_state=0), target)
        yield Case("SVC without probabilities, " + target, lambda: svm.SVC(), target)
        yield Case("LinearSVC, " + target, lambda: svm.LinearSVC(), target)
        yield Case("KNeighborsClassifier, " + target, lambda: neighbors.KNeighborsClassifier(), target)
    for kernel in ("linear", "poly", "sigmoid"):
        yield Case("SVR, " + kernel, lambda kernel=kernel: svm.SVR(kernel=kernel))
        yield Case("SVC, " + kernel, lambda kernel=kernel: svm.SVC(kernel=kernel, probability=True, random_state=0), "three")
    yield Case("RandomForestRegressor, two targets", lambda: ensemble.RandomForestRegressor(**small), "numbers")
    yield Case("DecisionTreeRegressor, two targets", lambda: tree.DecisionTreeRegressor(random_state=0), "numbers")
    yield Case("HistGradientBoostingRegressor, missing values", lambda: ensemble.HistGradientBoostingRegressor(max_iter=10), "number", MISSING, TEST_MISSING)
    yield Case("HistGradientBoostingClassifier, missing values", lambda: ensemble.HistGradientBoostingClassifier(max_iter=10), "three", MISSING, TEST_MISSING)
    yield Case("RandomForestRegressor, missing values", lambda: ensemble.RandomForestRegressor(**small), "number", MISSING, TEST_MISSING)
    yield Case("OneHotEncoder, integers", lambda: preprocessing.OneHotEncoder(handle_unknown="ignore"), "none", WHOLE, WHOLE[:20] + 1)
    yield Case("OrdinalEncoder, integers", lambda: preprocessing.OrdinalEncoder(), "none", WHOLE, WHOLE[:20])
    for norm in ("l1", "l2", "max"):
        yield Case("Normalizer, " + norm, lambda norm=norm: preprocessing.Normalizer(norm=norm), "none")
    yield Case("a pipeline of an imputer, a scaler and a forest", lambda: pipeline.make_pipeline(
        impute.SimpleImputer(), preprocessing.StandardScaler(), ensemble.RandomForestClassifier(**small)), "words", MISSING, TEST_MISSING)


LINES = """The quick brown fox jumps over the lazy dog.|A lazy dog, a quick fox: what a day!|Foxes and dogs are friends; cats are not|
   Not   a   word    here   |It was the best of times, it was the worst of times|It's 7 o'clock -- time for tea & cake|
foo_bar baz42 FOO_BAR Baz42|\tTabs\tand\nlines\n|the the the|a b c d|Größe und Maß, Äpfel ÄPFEL|naïve café|中文 字符 test|e-mail: someone@example.org|
Time and tide wait for no man|best worst best worst""".replace("|\n", "|").split("|")
LINES_TEST = LINES + ["unknown words only", "", " ", ".", "the quick unknown dog", "DOGS AND FOXES AND DOGS", "tide\u00a0tide", "time time time"]
SENTENCES = numpy.array(LINES * 4, dtype=object)
SENTENCES_TEST = numpy.array(LINES_TEST, dtype=object)
TARGETS["mood"] = numpy.array([len(s) % 3 for s in SENTENCES])
TARGETS["mood word"] = numpy.array([["sad", "calm", "glad"][len(s) % 3] for s in SENTENCES], dtype=object)


def texts():
    """What makes features of texts, and what is made of them."""
    from sklearn import compose, decomposition, ensemble, feature_extraction, feature_selection, linear_model, naive_bayes, neural_network, pipeline, preprocessing, svm

    count, tfidf = feature_extraction.text.CountVectorizer, feature_extraction.text.TfidfVectorizer

    def case(name, make, target="none", **more):
        return Case(name, make, target, SENTENCES, SENTENCES_TEST, **more)

    for sign in (True, False):
        yield Case("FeatureHasher of strings, signs %s" % sign, lambda sign=sign: feature_extraction.FeatureHasher(
            n_features=8, input_type="string", alternate_sign=sign), "none", WORDS, WORDS[:20])
    yield case("CountVectorizer, binary", lambda: count(binary=True))
    yield case("CountVectorizer, pairs of words", lambda: count(ngram_range=(1, 2)))
    yield case("CountVectorizer, pairs and triples of words", lambda: count(ngram_range=(2, 3)))
    yield case("CountVectorizer, words as they are written", lambda: count(lowercase=False))
    yield case("CountVectorizer, without stop words", lambda: count(stop_words="english"))
    yield case("CountVectorizer, characters", lambda: count(analyzer="char"))
    yield case("CountVectorizer, pairs of characters", lambda: count(analyzer="char", ngram_range=(1, 2), lowercase=False))
    yield case("CountVectorizer, a vocabulary", lambda: count(vocabulary=["dog", "fox", "the", "time"]))
    yield case("CountVectorizer, few words", lambda: count(max_features=7, min_df=2))
    yield case("CountVectorizer, a pattern", lambda: count(token_pattern=r"\b[a-z]+\b"), options={"tokenexp": r"\b[a-z]+\b"})
    yield case("CountVectorizer, separators", lambda: count(token_pattern=r"[^ .,;:!\n\t]+"), options={"separators": [" ", "[.]", ",", ";", ":", "!", "\\n", "\\t"]})
    yield case("TfidfVectorizer, pairs of words", lambda: tfidf(ngram_range=(1, 2)))
    yield case("TfidfVectorizer, logarithms of counts", lambda: tfidf(sublinear_tf=True))
    yield case("TfidfVectorizer, sums of one", lambda: tfidf(norm="l1", smooth_idf=False))
    yield case("TfidfVectorizer, not normalised", lambda: tfidf(norm=None, use_idf=False, binary=True))
    yield case("TfidfVectorizer, characters", lambda: tfidf(analyzer="char", ngram_range=(2, 3)))
    yield case("TfidfVectorizer, without stop words", lambda: tfidf(stop_words=["the", "and", "dog"], lowercase=False))
    yield case("CountVectorizer and TfidfTransformer", lambda: pipeline.make_pipeline(count(), feature_extraction.text.TfidfTransformer(sublinear_tf=True)))
    for target in ("mood", "mood word"):
        yield case("TfidfVectorizer and LogisticRegression, " + target, lambda: pipeline.make_pipeline(tfidf(), linear_model.LogisticRegression()), target)
        yield case("TfidfVectorizer and SGDClassifier, " + target, lambda: pipeline.make_pipeline(
            tfidf(ngram_range=(1, 2)), linear_model.SGDClassifier(loss="modified_huber", random_state=0)), target)
        yield case("CountVectorizer and MultinomialNB, " + target, lambda: pipeline.make_pipeline(count(), naive_bayes.MultinomialNB()), target)
        yield case("CountVectorizer and BernoulliNB, " + target, lambda: pipeline.make_pipeline(count(binary=True), naive_bayes.BernoulliNB()), target)
        yield case("CountVectorizer and ComplementNB, " + target, lambda: pipeline.make_pipeline(count(), naive_bayes.ComplementNB()), target)
    yield case("TfidfVectorizer and SVC", lambda: pipeline.make_pipeline(tfidf(analyzer="char", ngram_range=(1, 2)), svm.SVC(kernel="linear", probability=True, random_state=0)), "mood word")
    yield case("CountVectorizer and RandomForestClassifier", lambda: pipeline.make_pipeline(count(), ensemble.RandomForestClassifier(n_estimators=10, random_state=0)), "mood word")
    yield case("CountVectorizer, SelectKBest and LogisticRegression", lambda: pipeline.make_pipeline(
        count(), feature_selection.SelectKBest(feature_selection.chi2, k=10), linear_model.LogisticRegression()), "mood")
    yield case("TfidfVectorizer, TruncatedSVD and LogisticRegression", lambda: pipeline.make_pipeline(
        tfidf(), decomposition.TruncatedSVD(5, random_state=0), linear_model.LogisticRegression()), "mood")
    yield case("TfidfVectorizer and MLPClassifier", lambda: pipeline.make_pipeline(
        tfidf(), neural_network.MLPClassifier(hidden_layer_sizes=(8,), max_iter=50, random_state=0)), "mood word")
    yield case("words and characters together", lambda: pipeline.make_pipeline(
        pipeline.make_union(count(), tfidf(analyzer="char")), linear_model.LogisticRegression()), "mood")
    yield Columns("ColumnTransformer, a text and numbers", lambda transformers: compose.ColumnTransformer(transformers), [tfidf()])
    yield Columns("ColumnTransformer, two texts, numbers and categories, and LogisticRegression", lambda transformers: pipeline.make_pipeline(
        compose.ColumnTransformer(transformers), linear_model.LogisticRegression()), [count(ngram_range=(1, 2)), tfidf(analyzer="char")])


class Columns(Case):
    """Columns of texts, numbers and categories, which are inputs of their own."""

    def __init__(self, name, make, vectorizers):
        super().__init__(name, make)
        self.vectorizers = vectorizers

    def run(self):
        from sklearn import preprocessing

        def table(lines):
            """Columns of texts, of the same texts the other way round, of two numbers, and of categories."""
            n = numpy.arange(len(lines))
            colours = numpy.array(["red", "green", "blue"], dtype=object)[n % 3]
            return numpy.stack([lines, lines[::-1], (n % 7).astype(object), (n / 8).astype(object), colours], axis=1)

        transformers = [("text %d" % i, vectorizer, i) for i, vectorizer in enumerate(self.vectorizers)]
        transformers += [("numbers", preprocessing.StandardScaler(), [2, 3]), ("colours", preprocessing.OneHotEncoder(), [4])]
        train, test = table(SENTENCES), table(SENTENCES_TEST)
        model = self.make(transformers)
        model.fit(train, TARGETS["mood"])
        names = ["text", "more", "size", "weight", "colour"]
        numbers = ("size", "weight")
        types = [(name, FloatTensorType([None, 1]) if name in numbers else StringTensorType([None, 1])) for name in names]
        options = {id(model): {"zipmap": False}} if hasattr(model, "classes_") else None
        onx = skl2onnx.convert_sklearn(model, initial_types=types, options=options, target_opset=OPSET)
        inputs = []
        for i, name in enumerate(names):
            if name in [v.name for v in onx.graph.input]:
                column = test[:, i:i + 1].astype(numpy.float32) if name in numbers else test[:, i:i + 1]
                inputs.append((name, numpy.ascontiguousarray(column)))
        set_locale(onx.graph)
        write(self.name, "", onx.SerializeToString(), inputs)


def boosted():
    """Models of LightGBM and XGBoost, which onnxmltools converts."""
    missing = []
    for package in ("onnxmltools", "lightgbm", "xgboost"):
        try:
            __import__(package)
        except ImportError as e:
            missing.append(str(e))
    if missing:
        write("LightGBM and XGBoost", "; ".join(missing))
        return
    import lightgbm
    import onnxmltools
    import xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType as Floats

    class Boosted(Case):
        def convert(self, model):
            types = [("input", Floats([None, FEATURES]))]
            convert = onnxmltools.convert_lightgbm if "LGBM" in type(model).__name__ else onnxmltools.convert_xgboost
            more = {"zipmap": False} if "LGBM" in type(model).__name__ else {}
            return convert(model, initial_types=types, target_opset=15, **more)

    lgbm = dict(n_estimators=10, num_leaves=15, min_child_samples=5, verbose=-1)
    xgb = dict(n_estimators=10, max_depth=4)
    for target in ("two", "three"):
        yield Boosted("LGBMClassifier, " + target, lambda: lightgbm.LGBMClassifier(**lgbm), target)
        yield Boosted("LGBMClassifier, missing values, " + target, lambda: lightgbm.LGBMClassifier(**lgbm), target, MISSING, TEST_MISSING)
        yield Boosted("XGBClassifier, " + target, lambda: xgboost.XGBClassifier(**xgb), target)
        yield Boosted("XGBClassifier, missing values, " + target, lambda: xgboost.XGBClassifier(**xgb), target, MISSING, TEST_MISSING)
        yield Boosted("XGBRFClassifier, " + target, lambda: xgboost.XGBRFClassifier(**xgb), target)
    yield Boosted("LGBMRegressor", lambda: lightgbm.LGBMRegressor(**lgbm))
    yield Boosted("LGBMRegressor, missing values", lambda: lightgbm.LGBMRegressor(**lgbm), "number", MISSING, TEST_MISSING)
    yield Boosted("LGBMRegressor, forest", lambda: lightgbm.LGBMRegressor(boosting_type="rf", bagging_freq=1, bagging_fraction=0.8, **lgbm))
    yield Boosted("LGBMRegressor, poisson", lambda: lightgbm.LGBMRegressor(objective="poisson", **lgbm), "positive")
    categories = numpy.concatenate([X[:, :4], random.randint(0, 6, (ROWS, 1))], axis=1).astype(numpy.float32)
    yield Boosted("LGBMRegressor, categories", lambda: lightgbm.LGBMRegressor(categorical_feature=[4], **lgbm), "number", categories, categories[:40])
    yield Boosted("XGBRegressor", lambda: xgboost.XGBRegressor(**xgb))
    yield Boosted("XGBRegressor, missing values", lambda: xgboost.XGBRegressor(**xgb), "number", MISSING, TEST_MISSING)
    yield Boosted("XGBRegressor, poisson", lambda: xgboost.XGBRegressor(objective="count:poisson", **xgb), "positive")
    yield Boosted("XGBRegressor, dart", lambda: xgboost.XGBRegressor(booster="dart", **xgb))
    yield Boosted("XGBRFRegressor", lambda: xgboost.XGBRFRegressor(**xgb))


def versions():
    found = []
    for name in ("sklearn", "skl2onnx", "onnxmltools", "lightgbm", "xgboost"):
        try:
            found.append(name + " " + __import__(name).__version__)
        except ImportError:
            pass
    return ", ".join(found)


def main():
    wanted = sys.argv[1:]
    write("", versions())
    for case in cases():
        if wanted and case.name not in wanted:
            continue
        try:
            case.run()
        except Exception as e:  # whatever fails is the reason
            lines = str(e).strip().splitlines() or [""]
            write(case.name, (type(e).__name__ + ": " + lines[0])[:160])


main()
